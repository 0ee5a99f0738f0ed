#compdef initadvisor
# Written by tools/write_completions.py.

_initadvisor_values_1() {
    local -a values=(advise try apply)
    compadd "$@" -a values
}

_initadvisor_values_2() {
    local -a values=(boot size balanced)
    compadd "$@" -a values
}

_initadvisor_values_3() {
    local -a values=(cat gzip 'gzip -1' 'gzip -6' 'gzip -9' bzip2 lzma xz 'xz -0' 'xz -6' lzop lz4 'lz4 -1' 'lz4 -9' zstd 'zstd -1' 'zstd -3' 'zstd -9' 'zstd -19')
    compadd "$@" -a values
}

_initadvisor_values_4() {
    local -a values=(this-machine in-use no-unused no-graphics no-splash no-hwdb own-microcode modules-compressed modules-decompressed)
    compadd "$@" -a values
}

_initadvisor_values_5() {
    local -a values=(ubuntu-laptop-2018 arm-board-2013 arm-lzo-2010 at91-nand-2012 panda-mmc-2012 debian-programs-2021 guest-laptop guest-desktop dracut-bookworm-minimal dracut-bookworm-laptop dracut-bookworm-full tools-bookworm-laptop arch-cloud tools-trixie-laptop arch-trixie-laptop)
    _files
    compadd "$@" -a values
}

_initadvisor_values_6() {
    local -a values=(kvm uml tcg)
    compadd "$@" -a values
}

_initadvisor_values_7() {
    local -a values=(gzip bzip2 lzma xz lzop lz4 zstd)
    compadd "$@" -a values
}

_initadvisor_values_8() {
    local -a values=(machine.read_speed_mb_s machine.overlap_ms candidates.settings candidates.slow_codecs candidates.jobs candidates.cache_limit_mb recommend.objective recommend.boots_per_upgrade recommend.tolerance_ms recommend.tolerance_fraction recommend.certainty recommend.max_excess_s daemon.policy daemon.trial_boots_per_kernel daemon.person_resets daemon.motd)
    compadd "$@" -a values
}

_initadvisor_config_unset() {
    _arguments \
        '--json[Print it as JSON]' \
        '--help[Show this message and exit]' \
        '::value:_initadvisor_values_8'
}

_initadvisor_config_set_after() {
    case $words[CURRENT-1] in
        recommend.objective) compadd "$@" boot size balanced ;;
        daemon.policy) compadd "$@" advise try apply ;;
        daemon.person_resets) compadd "$@" true false guard watchdog ;;
        daemon.motd) compadd "$@" true false ;;
    esac
}

_initadvisor_config_set() {
    _arguments \
        '--json[Print it as JSON]' \
        '--help[Show this message and exit]' \
        '::value:_initadvisor_values_8' \
        '::value:_initadvisor_config_set_after'
}

_initadvisor_config() {
    local state line
    local -a commands=(
        'set:Set KEY to VALUE in the file'
        'unset:Remove KEY from /etc/initadvisor.toml, so that its default holds'
    )
    _arguments -C \
        '--json[Print it as JSON]' \
        '--help[Show this message and exit]' \
        '1:command:->command' \
        '*::argument:->argument'
    case $state in
        command) _describe -V command commands ;;
        argument) (( $+functions[_initadvisor_config_${line[1]}] )) && _initadvisor_config_${line[1]} ;;
    esac
}

_initadvisor_doctor() {
    _arguments \
        '--try-engines[Start virtual machines to see if they work]' \
        '--json[Print it as JSON]' \
        '--help[Show this message and exit]'
}

_initadvisor_history() {
    _arguments \
        '--limit=[Show only so many of each, the latest ones \[10, of exported boots all\]]:limit: ' \
        '--since=[Only what is since a date (2026-01-31), or since so long ago (90d, 12w)]:since: ' \
        '--json[Print all as JSON, with every sample]' \
        '--csv[Print the boots as CSV]' \
        '--import=[Keep the boots that another machine printed as JSON or CSV]:import:_files' \
        '--drop-damaged[Delete records that are damaged, and name them]' \
        '--help[Show this message and exit]'
}

_initadvisor_measure() {
    _arguments \
        '--backfill[Record earlier boots, too, from the journal]' \
        '--dry-run[Show what would be recorded, and record nothing]' \
        '--directory=[Record the boots in other machines’ journals]:directory:_files' \
        '*--file=[The same with a journal’s file, or a kernel’s log as text; may be repeated]:file:_files' \
        '--json[Print the records as JSON]' \
        '--help[Show this message and exit]'
}

_initadvisor_contents() {
    _arguments \
        '--files[List the largest files of each purpose, too]' \
        '--unused[Show which modules and firmware no recorded boot used]' \
        '--kernel-codecs[Predict what other codecs would cost for the kernel, too. Takes minutes, once]' \
        '--estimate[Estimate what less in the image saves; nothing is built]' \
        '--variants[Have the generator build the image with less in it, and show what that saves]' \
        '--json[Print the answer as JSON]' \
        '--help[Show this message and exit]' \
        '::value:_files'
}

_initadvisor_inspect() {
    _arguments \
        '--kernel-config=[The configuration of the kernel that is to unpack the image (plain or .gz)]:kernel-config:_files' \
        '--json[Print the result as JSON]' \
        '--help[Show this message and exit]' \
        '::value:_files'
}

_initadvisor_candidates_sweep() {
    _arguments \
        '--codec=[The codec]:codec:_initadvisor_values_7' \
        '--levels=[Its levels, for example 1..19 or 1,3,9; by default those worth trying]:levels: ' \
        '--threads=[Numbers of threads, for example 1,2,4; by default what the generator uses]:threads: ' \
        '--image=[Of this image instead of this machine’s own]:image:_files' \
        '--build[Build and keep each; time nothing on samples]' \
        '--json[Print the answer as JSON]' \
        '--help[Show this message and exit]'
}

_initadvisor_candidates_prune() {
    _arguments \
        '--all[Remove all candidates]' \
        '--json[Print the result as JSON]' \
        '--help[Show this message and exit]'
}

_initadvisor_candidates_list() {
    _arguments \
        '--image=[Show the settings of this image instead of the one this machine boots]:image:_files' \
        '--json[Print them as JSON]' \
        '--help[Show this message and exit]'
}

_initadvisor_candidates_build() {
    _arguments \
        '--image=[Derive them from this image instead of the one this machine boots]:image:_files' \
        '--all[Build slow codecs, such as bzip2, and what the generator cannot be configured for, too]' \
        '*--only=[Build only this setting, for example ’zstd -19’; may be repeated]:only:_initadvisor_values_3' \
        '--jobs=[How many to build at the same time]:jobs: ' \
        '--json[Print the result as JSON]' \
        '--help[Show this message and exit]'
}

_initadvisor_candidates() {
    local state line
    local -a commands=(
        'build:Build what is not there yet, several at once, at idle priority'
        'list:List what every setting gives, built or estimated, and the candidates of other images'
        'prune:Remove the candidates of images that are gone or have changed, and what is over the limit'
        'sweep:Compare levels and threads of a codec\: size, time to build, time to boot'
    )
    _arguments -C \
        '--help[Show this message and exit]' \
        '1:command:->command' \
        '*::argument:->argument'
    case $state in
        command) _describe -V command commands ;;
        argument) (( $+functions[_initadvisor_candidates_${line[1]}] )) && _initadvisor_candidates_${line[1]} ;;
    esac
}

_initadvisor_whatif() {
    _arguments \
        '--read-speed=[How fast the boot loader reads; also a range, 20..2000]:read-speed: ' \
        '--cpu-scale=[How many times as long the processor takes (2\: half as fast); also a range]:cpu-scale: ' \
        '--overlap=[For how long the kernel is busy before it needs the initramfs; also a range]:overlap: ' \
        '*--table=[Compare the settings of a table\: a built-in one, or a TOML or CSV file]:table:_initadvisor_values_5' \
        '--image=[Compare candidates of this image, of any machine, instead of this machine’s own]:image:_files' \
        '--objective=[What is to be small\: the time of a boot, the image, or boot and build together]:objective:_initadvisor_values_2' \
        '--list[List the built-in tables]' \
        '--json[Print the answer as JSON]' \
        '--help[Show this message and exit]'
}

_initadvisor_lab() {
    _arguments \
        '--image=[Time this image’s candidates, not this machine’s]:image:_files' \
        '*--only=[Time only this; may be repeated]:only:_initadvisor_values_3' \
        '--all[Time slow codecs, too, such as bzip2]' \
        '--rounds=[Boot each image so often, whether the order is settled or not]:rounds: ' \
        '--verify=[Does this machine’s kernel unpack it?]:verify:_files' \
        '--engines[Try KVM anew, and say which engines are there]' \
        '--engine=[Use this engine, not the best that works]:engine:_initadvisor_values_6' \
        '--kernel=[The kernel’s file (a bzImage or a UKI)]:kernel:_files' \
        '--uml=[The user-mode Linux to use instead of linux.uml]:uml:_files' \
        '--json[Print the result as JSON]' \
        '--help[Show this message and exit]'
}

_initadvisor_trial_stop() {
    _arguments \
        '--json[Print the campaign as JSON, and what was done]' \
        '--help[Show this message and exit]'
}

_initadvisor_trial_status() {
    _arguments \
        '--json[Print it as JSON]' \
        '--help[Show this message and exit]'
}

_initadvisor_trial_start() {
    _arguments \
        '*--only=[Boot this setting, for example ’zstd -19’, at least once; may be repeated]:only:_initadvisor_values_3' \
        '--max-boots=[End after so many boots]:max-boots: ' \
        '--reboot[Reboot for each boot, after a countdown that can be cancelled, until it is paused]' \
        '--countdown=[How long the countdown on this terminal takes]:countdown: ' \
        '--ignore-unlocking[Go on where a disk may ask for its passphrase]' \
        '--yes[Ask nothing]' \
        '--json[Print the campaign as JSON, and what was done]' \
        '--help[Show this message and exit]'
}

_initadvisor_trial_resume() {
    _arguments \
        '--reboot[Reboot for each boot, after a countdown that can be cancelled, until it is paused]' \
        '--countdown=[How long the countdown on this terminal takes]:countdown: ' \
        '--json[Print the campaign as JSON, and what was done]' \
        '--help[Show this message and exit]'
}

_initadvisor_trial_pause() {
    _arguments \
        '--json[Print the campaign as JSON, and what was done]' \
        '--help[Show this message and exit]'
}

_initadvisor_trial_next() {
    _arguments \
        '--dry-run[Only say which boot would be next, and why]' \
        '--json[Print the campaign as JSON, and what was done; with --dry-run, what would be next]' \
        '--countdown=[How long the countdown on this terminal takes]:countdown: ' \
        '--help[Show this message and exit]'
}

_initadvisor_trial() {
    local state line
    local -a commands=(
        'next:Arm the next boot, if it is to be armed now'
        'pause:Arm nothing until it is resumed, and clear the boot partition'
        'resume:Go on with a campaign\: judge this boot, and arm the next'
        'start:Begin a campaign\: build, verify, and arm the first boot'
        'status:Show what has booted, what must not, and what is next'
        'stop:End the campaign, and leave the machine as it was'
    )
    _arguments -C \
        '--help[Show this message and exit]' \
        '1:command:->command' \
        '*::argument:->argument'
    case $state in
        command) _describe -V command commands ;;
        argument) (( $+functions[_initadvisor_trial_${line[1]}] )) && _initadvisor_trial_${line[1]} ;;
    esac
}

_initadvisor_report() {
    _arguments \
        '-o[Write to this file \[initadvisor-report.html\]; - is standard output]:output:_files' \
        '--output=[Write to this file \[initadvisor-report.html\]; - is standard output]:output:_files' \
        '--markdown[Print Markdown, for a forum or a bug report]' \
        '--image=[Report on this image, of any machine, instead of this machine’s own]:image:_files' \
        '--read-speed=[How fast the boot loader reads, if you know it]:read-speed: ' \
        '--overlap=[For how long the kernel is busy before it needs the initramfs, if you know it]:overlap: ' \
        '--objective=[What is to be small\: the time of a boot, the image, or boot and build together]:objective:_initadvisor_values_2' \
        '*--table=[Show also what a table of whatif says\: a built-in one, or a TOML or CSV file]:table:_initadvisor_values_5' \
        '--help[Show this message and exit]'
}

_initadvisor_status() {
    _arguments \
        '--check[Read what is kept whole, and compare it]' \
        '--json[Print it as JSON]' \
        '--help[Show this message and exit]'
}

_initadvisor_rollback() {
    _arguments \
        '--confirm[Do it; without, it is only shown]' \
        '--unverified[Go on where no kernel can unpack a rebuilt image]' \
        '--drop[Remove what is kept for going back, instead]' \
        '--keep=[With --drop\: not what is kept of the latest N changes]:keep: ' \
        '--json[Print what would be done as JSON]' \
        '--help[Show this message and exit]'
}

_initadvisor_apply() {
    _arguments \
        '--variant=[Take content out of the image, as contents --variants has built it]:variant:_initadvisor_values_4' \
        '--confirm[Do it; without, only the plan is shown]' \
        '--all[Fallback images and those of other kernels, too]' \
        '--immediate[Replace the images without a proving boot]' \
        '--unverified[Go on where no kernel can unpack them on trial]' \
        '--accept-content-changes[Go on where a rebuild brings more than another compression]' \
        '--without-backup[Do not keep the previous images]' \
        '--without-entry[Go on without a menu entry for the previous image]' \
        '--ignore-unlocking[Go on where a disk may ask for its passphrase]' \
        '--read-speed=[How fast the boot loader reads, if you know it]:read-speed: ' \
        '--overlap=[For how long the kernel is busy before it needs the initramfs, if you know it]:overlap: ' \
        '--json[Print the plan as JSON]' \
        '--help[Show this message and exit]' \
        '::value:_initadvisor_values_3'
}

_initadvisor_recommend() {
    _arguments \
        '--image=[Weigh this image, of any machine, instead of this machine’s own]:image:_files' \
        '--sample[Make an image of this machine’s modules and programs, where it has no initramfs]' \
        '--kernel-config=[The configuration of the kernel that is to unpack the image (plain or .gz)]:kernel-config:_files' \
        '--read-speed=[How fast the boot loader reads, if you know it]:read-speed: ' \
        '--overlap=[For how long the kernel is busy before it needs the initramfs, if you know it]:overlap: ' \
        '--objective=[What is to be small\: the time of a boot, the image, or boot and build together]:objective:_initadvisor_values_2' \
        '*--only=[Weigh only this; may be repeated]:only:_initadvisor_values_3' \
        '--all[Show every setting with all figures; weigh slow codecs, too, such as bzip2]' \
        '--build[Build the candidates that may be the best, and weigh them again]' \
        '--lab[Build them, and let kernels unpack them in virtual machines before they are weighed]' \
        '--explain[Say why\: what decides, and what was assumed]' \
        '--quiet[Print the setting to have, and nothing else]' \
        '--json[Print the answer as JSON]' \
        '--help[Show this message and exit]'
}

_initadvisor_disable() {
    _arguments \
        '--json[Print it as JSON]' \
        '--help[Show this message and exit]'
}

_initadvisor_enable() {
    _arguments \
        '--policy=[What the daemon does with its answers; as configured if it is left out]:policy:_initadvisor_values_1' \
        '--yes[Ask nothing]' \
        '--json[Print it as JSON; nobody is asked]' \
        '--help[Show this message and exit]'
}

_initadvisor() {
    local state line
    local -a commands=(
        'enable:Have all of it done by itself from now on'
        'disable:Have nothing done by itself any more'
        'recommend:Which compression suits this machine'
        'apply:Change the compression, safely'
        'rollback:Go back to before the latest change'
        'status:What is configured, pending, and kept'
        'report:The answer as a page to look at and give away'
        'trial:Boot candidates one at a time, safely'
        'lab:Time and verify candidates in a virtual machine'
        'whatif:What if the disk, processor or overlap differed'
        'candidates:Build, list and prune candidates'
        'inspect:What is in an initramfs, and would it unpack'
        'contents:What the files of an image cost each boot'
        'measure:Record what boots spent, and on what'
        'history:What was measured so far'
        'doctor:Is all there that is needed'
        'config:What is configured, and from where; change it'
    )
    _arguments -C \
        '--version[Show the version and exit]' \
        '*-v[Log to stderr; twice\: every program]' \
        '*--verbose[Log to stderr; twice\: every program]' \
        '--help[Show this message and exit]' \
        '1:command:->command' \
        '*::argument:->argument'
    case $state in
        command) _describe -V command commands ;;
        argument) (( $+functions[_initadvisor_${line[1]}] )) && _initadvisor_${line[1]} ;;
    esac
}

_initadvisor "$@"
