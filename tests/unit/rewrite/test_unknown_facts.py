"""What a value may depend on that is not the same for the program that reads the files."""

import pytest

from initadvisor.rewrite.files import ConfigFile, ReadingRules
from initadvisor.rewrite.survey import survey, unknown_facts
from initadvisor.rewrite.syntax import Shell


@pytest.mark.parametrize(
    ("text", "facts"),
    [
        ("[[ $kernel == 6* ]] && X=1\n", "$kernel"),
        ("case ${kernel%%-*} in 6) X=1 ;; esac\n", "$kernel"),
        ("if [ $# -gt 0 ]; then X=$1; fi\n", "$#, $1"),
        ("X=$(echo ${#names} ${!other})\n", "$names, $other"),
        ("X=`uname $0`\n", "$0"),
        ("f() { X=1; }; [ -n $verbose ] && f\n", "$verbose"),
        ("((EUID)) || X=1\n", "$EUID"),
        ("[[ version -ge 41 ]] && X=1\n", "$version"),
        ("[[ -v image ]] && X=1\n", "$image"),
        ("[ -v image ] && X=1\n", "$image"),
        ('[ "$(id -u)" = 0 ] && X=1\n', "id"),
        ("declare -F helper && X=1\n", "declare -F"),
        ("[ -e /run/ostree-booted ] && X=1\n", "/run/ostree-booted"),
        ("[ -b /dev/sda ] && X=1\n", "/dev/sda"),
        (". /etc/$name\n", "$name"),
        ("[ $late ] && X=1\nlate=1\n", "$late"),
        ("if [ -e /etc/id ] >/dev/null; then X=1; fi\n", ""),
        ("[ -d /usr/dev ] && [ -d /etc/run ] && X=1\n", ""),
        ("name=a; [ $name = a ] && X=1\n", ""),
        ("for name in a b; do X=$name; done\n", ""),
        ("while read -r name; do X=$name; done </etc/names\n", ""),
        ("[[ a =~ (.) ]] && X=${BASH_REMATCH[1]}\n", ""),
        ("X=${X:-1}\n", ""),
        ("touch /tmp/x\nX=$(cat /etc/x)\n", ""),
        ("mkdir -p /run/x; echo /run/x # &&\nX=$(cat /etc/x)\n", ""),
        ("touch /run/x && X=1\n", "/run/x"),
        ("touch /run/x || X=1\n", "/run/x"),
        ("touch /run/x\n[ $? = 0 ] && X=1\n", "/run/x"),
        ("if touch /run/x; then X=1; fi\n", "/run/x"),
        ("touch /run/x | read X\n", "/run/x"),
        ("touch /run/x >/etc/x; X=$(cat /etc/x)\n", "/run/x"),
        ("echo ${X:=$kernel}\n", "$kernel"),
        ("X=$(echo /run/*)\n", "/run/"),
        ("touch /etc/x; [ -e /run/x ] && X=1\n", "/run/x"),
        ("cd /run; [ -e x ] && X=1\n", "/run"),
        ("Y=$kernel\nX=1\n", ""),
        ("[[ $kernel ]] && Y=1\nX=1\n", ""),
    ],
)
def test_only_what_may_decide_about_the_value_counts(text: str, facts: str) -> None:
    units = survey([ConfigFile(path="", text=text)], ReadingRules(shell=Shell.BASH))
    assert ", ".join(sorted(unknown_facts(units, ["X"]))) == facts
