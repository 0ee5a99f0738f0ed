# Completion for bash-completion(1). Written by tools/write_completions.py.

_initadvisor() {
    local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]}
    local path="" files="" quoted="" number word escaped
    local -a offered=()
    COMPREPLY=()
    # Words that hold one another (--image=FILE) come apart in COMP_WORDS.
    if [[ $current == = ]]; then
        current=""
    elif [[ $previous == = ]]; then
        previous=${COMP_WORDS[COMP_CWORD - 2]}
    fi
    for ((number = 1; number < COMP_CWORD; number++)); do
        word=${COMP_WORDS[number]}
        [[ $word == -* ]] && continue
        path+="${path:+ }$word"
        case $path in trial | candidates | config) ;; *) break ;; esac
    done
    case "$path $previous" in
    'enable --policy' | 'config set daemon.policy') offered=(advise try apply) ;;
    'recommend --image' | 'recommend --kernel-config' | 'report -o' | 'report --output' | 'report --image' | 'lab --image' | 'lab --verify' | 'lab --kernel' | 'lab --uml' | 'whatif --image' | 'candidates build --image' | 'candidates list --image' | 'candidates sweep --image' | 'inspect --kernel-config' | 'measure --directory' | 'measure --file' | 'history --import') files=yes ;;
    'recommend --read-speed' | 'recommend --overlap' | 'apply --read-speed' | 'apply --overlap' | 'rollback --keep' | 'report --read-speed' | 'report --overlap' | 'trial next --countdown' | 'trial resume --countdown' | 'trial start --max-boots' | 'trial start --countdown' | 'lab --rounds' | 'whatif --read-speed' | 'whatif --cpu-scale' | 'whatif --overlap' | 'candidates build --jobs' | 'candidates sweep --levels' | 'candidates sweep --threads' | 'history --limit' | 'history --since' | 'config set machine.read_speed_mb_s' | 'config set machine.overlap_ms' | 'config set candidates.settings' | 'config set candidates.slow_codecs' | 'config set candidates.jobs' | 'config set candidates.cache_limit_mb' | 'config set recommend.boots_per_upgrade' | 'config set recommend.tolerance_ms' | 'config set recommend.tolerance_fraction' | 'config set recommend.certainty' | 'config set recommend.max_excess_s' | 'config set daemon.trial_boots_per_kernel') : ;;
    'recommend --objective' | 'report --objective' | 'whatif --objective' | 'config set recommend.objective') offered=(boot size balanced) ;;
    'recommend --only' | 'trial start --only' | 'lab --only' | 'candidates build --only') offered=(cat gzip 'gzip -1' 'gzip -6' 'gzip -9' bzip2 lzma xz 'xz -0' 'xz -6' lzop lz4 'lz4 -1' 'lz4 -9' zstd 'zstd -1' 'zstd -3' 'zstd -9' 'zstd -19') ;;
    'apply --variant') offered=(this-machine in-use no-unused no-graphics no-splash no-hwdb own-microcode modules-compressed modules-decompressed) ;;
    'report --table' | 'whatif --table') offered=(ubuntu-laptop-2018 arm-board-2013 arm-lzo-2010 at91-nand-2012 panda-mmc-2012 debian-programs-2021 guest-laptop guest-desktop dracut-bookworm-minimal dracut-bookworm-laptop dracut-bookworm-full tools-bookworm-laptop arch-cloud tools-trixie-laptop arch-trixie-laptop) files=yes ;;
    'lab --engine') offered=(kvm uml tcg) ;;
    'candidates sweep --codec') offered=(gzip bzip2 lzma xz lzop lz4 zstd) ;;
    'config set daemon.person_resets') offered=(true false guard watchdog) ;;
    'config set daemon.motd') offered=(true false) ;;
    *)
        case "$path $current" in
        'config unset -'*) offered=(--json --help) ;;
        'config unset '*) offered=(machine.read_speed_mb_s machine.overlap_ms candidates.settings candidates.slow_codecs candidates.jobs candidates.cache_limit_mb recommend.objective recommend.boots_per_upgrade recommend.tolerance_ms recommend.tolerance_fraction recommend.certainty recommend.max_excess_s daemon.policy daemon.trial_boots_per_kernel daemon.person_resets daemon.motd) ;;
        'config set -'*) offered=(--json --help) ;;
        'config set '*) offered=(machine.read_speed_mb_s machine.overlap_ms candidates.settings candidates.slow_codecs candidates.jobs candidates.cache_limit_mb recommend.objective recommend.boots_per_upgrade recommend.tolerance_ms recommend.tolerance_fraction recommend.certainty recommend.max_excess_s daemon.policy daemon.trial_boots_per_kernel daemon.person_resets daemon.motd) ;;
        'config -'*) offered=(--json --help) ;;
        'config '*) offered=(set unset) ;;
        'doctor '*) offered=(--try-engines --json --help) ;;
        'history '*) offered=(--limit --since --json --csv --import --drop-damaged --help) ;;
        'measure '*) offered=(--backfill --dry-run --directory --file --json --help) ;;
        'contents -'*) offered=(--files --unused --kernel-codecs --estimate --variants --json --help) ;;
        'contents '*) files=yes ;;
        'inspect -'*) offered=(--kernel-config --json --help) ;;
        'inspect '*) files=yes ;;
        'candidates sweep '*) offered=(--codec --levels --threads --image --build --json --help) ;;
        'candidates prune '*) offered=(--all --json --help) ;;
        'candidates list '*) offered=(--image --json --help) ;;
        'candidates build '*) offered=(--image --all --only --jobs --json --help) ;;
        'candidates -'*) offered=(--help) ;;
        'candidates '*) offered=(build list prune sweep) ;;
        'whatif '*) offered=(--read-speed --cpu-scale --overlap --table --image --objective --list --json --help) ;;
        'lab '*) offered=(--image --only --all --rounds --verify --engines --engine --kernel --uml --json --help) ;;
        'trial stop '*) offered=(--json --help) ;;
        'trial status '*) offered=(--json --help) ;;
        'trial start '*) offered=(--only --max-boots --reboot --countdown --ignore-unlocking --yes --json --help) ;;
        'trial resume '*) offered=(--reboot --countdown --json --help) ;;
        'trial pause '*) offered=(--json --help) ;;
        'trial next '*) offered=(--dry-run --json --countdown --help) ;;
        'trial -'*) offered=(--help) ;;
        'trial '*) offered=(next pause resume start status stop) ;;
        'report '*) offered=(-o --output --markdown --image --read-speed --overlap --objective --table --help) ;;
        'status '*) offered=(--check --json --help) ;;
        'rollback '*) offered=(--confirm --unverified --drop --keep --json --help) ;;
        'apply -'*) offered=(--variant --confirm --all --immediate --unverified --accept-content-changes --without-backup --without-entry --ignore-unlocking --read-speed --overlap --json --help) ;;
        'apply '*) offered=(cat gzip 'gzip -1' 'gzip -6' 'gzip -9' bzip2 lzma xz 'xz -0' 'xz -6' lzop lz4 'lz4 -1' 'lz4 -9' zstd 'zstd -1' 'zstd -3' 'zstd -9' 'zstd -19') ;;
        'recommend '*) offered=(--image --sample --kernel-config --read-speed --overlap --objective --only --all --build --lab --explain --quiet --json --help) ;;
        'disable '*) offered=(--json --help) ;;
        'enable '*) offered=(--policy --yes --json --help) ;;
        ' -'*) offered=(--version -v --verbose --help) ;;
        ' '*) offered=(enable disable recommend apply rollback status report trial lab whatif candidates inspect contents measure history doctor config) ;;
        esac
        ;;
    esac
    if [[ $current == [\"\']* ]]; then
        quoted=yes current=${current:1}
    fi
    for word in "${offered[@]}"; do
        printf -v escaped %q "$word"
        if [[ $quoted && $word == "$current"* ]]; then
            COMPREPLY+=("$word")
        elif [[ ! $quoted && $escaped == "$current"* ]]; then
            COMPREPLY+=("$escaped")
        fi
    done
    if [[ $files ]]; then
        compopt -o default
    fi
}

complete -o nosort -F _initadvisor initadvisor
