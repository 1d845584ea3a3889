"""Commands, and the verdict on them before they are run."""

from __future__ import annotations

import builtins
import subprocess
from pathlib import Path

import pytest

from callboard.messages import Effect, Hazard
from callboard.surfaces import shell
from callboard.surfaces.shell._base_shell import PATH
from callboard.surfaces.shell._remote_files import RemoteFiles
from callboard.surfaces.shell.judging._disk import LocalDisk
from callboard.surfaces.shell.judging._judge import judge

SCRIPT = Path(shell.__file__).with_name("_remote.sh")
DELETES, LEAVES, OVERWRITES, UNKNOWN = Hazard.DELETES, Hazard.LEAVES, Hazard.OVERWRITES, Hazard.UNKNOWN

READ = (
    r"""
ls
ls -la
ls -lah deep
cat .a*
ls .*rc
cat {a,b}.log
cat {"a",b''}.log
cat {a.l,b.l}{og,''og}
x=a; cat {$x,b}.log
cat {a,{a,b}}.log
head -{1,2} a.log
echo {1..3} {a..c}x {01..10..3} {3..1} {,x}
for i in {1..3}; do echo $i; done
find deep -name a,b -exec wc -l {} +
x={a,b}; echo "$x"
cat ~''/x ~"user" ~\x x~ {~'',b}
rg --line-regexp price a.txt
ls --color=never --sort=time .
/bin/ls -1
/usr/bin/wc -l a.log
"ls" '-l'
l's' -l
cat a.log
cat -n a.log deep/c.txt
cat -- a.log
cat "a b"
cat a\ b
cat ./*.log
cat *.log
cat -
cat /dev/null
head -5 a.log
head -n -5 a.log
head --lines=5 a.log
tail -n +2 a.log
tail -c 20 a.log
wc -lw a.log
grep -c ERROR *.log
grep -rn ERROR .
grep -r ERROR
grep -rn --include=*.log ERROR .
grep -E 'a|b' a.log
grep -e x -e y a.log
grep -f deep/c.txt a.log
grep "foo\$" a.log
grep -A3 -B 2 x a.log
egrep -i 'x' a.log
rg -n --hidden x deep
find . -name '*.log'
find . -type f -size +1k -print0
find . \( -name a -o -name b \) ! -newer a.log
find . -maxdepth 1 -printf '%f\n'
find deep -name '*.txt' -exec grep -c x {} +
find deep -type f -exec wc -l {} \;
find deep -exec jq . {} +
find a.log -exec head -n 2 {} \;
find deep -exec basename {} \;
awk '/TARGET/' a.log
sort a.log
sort -t, -k2,2nr a.log
sort -u a.log | uniq -c | sort -rn | head
cut -d: -f1 a.log
cut -d ' ' -f 2- a.log
tr a-z A-Z < a.log
tr -d '\r' < a.log
sed -n 1,5p a.log
sed -n '/x/,/y/p;$=' a.log
sed 's/a/b/g' a.log
sed 's/[^,]*,//' a.log
sed -E 's#(a|b)#<\1>#' a.log
sed -e 5q -e '/^$/d' a.log
awk '{print $1}' a.log
awk -F: '{ n += $2 } END { print n }' a.log
awk -v x=1 'NR == x' a.log
awk '$3 > 100' a.log
jq . a.log
jq -r '.a[] | .b' a.log
diff a.log b.log
diff -u a.log b.log
cmp -s a.log b.log
comm -12 a.log b.log
join a.log b.log
paste -d, a.log b.log
stat -c %s a.log
du -sh .
df -h .
file a.log
md5sum a.log
sha256sum *.log
base64 -d a.log
od -c a.log
xxd -l 16 a.log
nl a.log
rev a.log
tac a.log
fold -w 10 a.log
column -t -s, a.log
readlink -f a.log
realpath deep
basename a.log .log
dirname deep/c.txt
seq 1 5
seq -5 5
echo hello
echo -n "a  b"
echo "$HOME" $? "$NOBODY_KNOWS"
echo '$(rm a.log)' "\`x\`" \; \>
echo a#b # rm a.log
printf '%s\n' a b
true
false
:
pwd
date
date +%s
date -d '1 day ago' +%F
date -u
id -u
whoami
uname -a
hostname
nproc
ps aux
which ls
type ls
sleep 0
test -f a.log
[ -f a.log ]
[ ! -d deep ]
[ "$x" = y ]
[ -n "$x" ] && ls
set -euo pipefail; ls | wc -l
ls; pwd
ls && pwd || echo no
ls | grep x | wc -l
ls |& cat
ls 2>&1 | cat
ls > /dev/null 2>&1
ls 2>/dev/null
ls &>/dev/null
ls >&2
ls 2>&-
cat < a.log
cat <<< "some text"
! grep -q x a.log
(ls; pwd)
{ ls; pwd; }
(cd deep && ls)
if [ -f a.log ]; then cat a.log; else echo none; fi
for f in a.log b.log; do wc -l "$f"; done
for f in *.log; do echo "$f: "; grep -c x "$f"; done
for f in *.log; do grep -c x $f; done
for i in 1 2 3; do echo $i; done
f=a.log; cat "$f"
f=a.log g=b.log; diff $f ${g}
X=1 ls
LC_ALL=C sort a.log
env A=1 ls
nice -n 5 ls
nohup ls
timeout 5 cat a.log
timeout -k 1 -s KILL 5s cat a.log
stdbuf -oL cat a.log
time ls
time -p ls
exit 0
ls \
  -l \
  deep
""".strip()
    .replace("\\\n", "\\\0")
    .split("\n")
)

ASK = r"""
foo
x=; $x
make
python3 -c 'print(1)'
bash -c ls
sh x.sh
bash
eval ls
exec ls
command ls
builtin echo
source x
. x
xargs rm
find . -print0 | xargs -0 rm
ls | xargs rm -f
ls | xargs cat
sudo ls
env sudo ls
./run
deep/run
/tmp/ls
../ls
~/ls
$x
"$x" -l
$HOME/x
echo $(rm a.log)
echo `rm a.log`
echo "$(rm a.log)"
cat <(rm a.log)
tee >(cat)
ls > $(echo x)
cat <<EOF
cat << 'EOF'
bash <<< 'rm a.log'
echo $((x=1))
echo $((a[$(rm a.log)]))
((x=1))
[[ -v a[$(rm a.log)] ]]
[[ -f a.log ]]
let x=1
test -v 'a[$(rm a.log)]'
[ "$x" "$y" ]
[ "$x" "$y" z ]
printf -v x y
printf '%n' 'a[$(rm a.log)]'
printf '%5n' x
printf "$x" y
read x
mapfile x
declare x=1
local x=1
readonly x=1
typeset x
unset x
trap 'rm a.log' EXIT
enable -f x y
shopt -s extglob
alias ls=rm
set -x
set -a
set -o allexport
hash -p x ls
f() { ls; }; f
function ls { rm a.log; }
ls() { rm a.log; }
coproc ls
ls & rm a.log
ls &
while true; do ls; done
until ls; do :; done
case x in x) ls;; esac
select x in a; do ls; done
for f; do ls; done
for f in *.log; do cd deep; cat "$f"; done
for PATH in .; do ls; done
PATH=. ls
PATH=.:$PATH; ls
LD_PRELOAD=./x.so ls
BASH_ENV=x ls
IFS=a ls
GREP_OPTIONS=-o ls
GIT_PAGER=x git log
LESSOPEN='|rm' ls
TZDIR=x ls
x[1]=2
x[$(rm a.log)]=1
x+=1
x=(a b)
export PATH=.
export -f ls
export A
env PATH=. ls
env -i ls
env -S 'rm a.log'
env -C / ls
env LD_PRELOAD=x ls
env cd deep
nice sudo ls
timeout 5 sudo ls
timeout ls
time rm -i
time cd deep
nohup ./run
ls --unknown
ls -l --col
cat -Z a.log
grep --fil=x a.log
grep -Z9 x
sort --compress-program=./run a.log
sort --comp=./run a.log
sort -T . a.log
sort --files0-from=a.log
sort -o
sort --outp=x a.log
sed -f x a.log
sed 'w x' a.log
sed -n '/x/w x' a.log
sed 's/a/b/w x' a.log
sed 's/a/b/e' a.log
sed 's|a|b|w x' a.log
sed '1e rm a.log' a.log
sed 'r /etc/passwd' a.log
sed '1!{p}' a.log
sed -i.bak s/a/b/ a.log
sed "$x" a.log
awk 'BEGIN { system("rm a.log") }'
awk '{ print > "x" }' a.log
awk '{ print | "sh" }' a.log
awk '{ "date" | getline d }' a.log
awk 'BEGIN { while ((getline line < "x") > 0) n++ }'
awk 'BEGIN { ARGV[1] = "/etc/passwd" } 1' a.log
awk -f x a.log
awk '@load "x"'
awk "$x" a.log
gawk -i inplace 1 a.log
find . -exec rm -r {} +
find . -exec sh -c x {} \;
find . -exec sort -o {} {} \;
find . -exec sed -i s/a/b/ {} \;
find . -execdir ls {} \;
find . -ok ls {} \;
find . -exec sort + -name -ox -exec ls {} +
find . -fprint x
find . -fls x
find . -fprintf x y
find . -name *.log -newer
find . -files0-from x
find -L . -name x
find . -nam x
rg --pre ./run x
rg -z x
jq -f x a.log
jq 'import "x" as x; .' a.log
jq --slurpfile x /etc/passwd . a.log
date -s 2020-01-01
date 01010000
date --set=x
hostname evil
hostname -F a.log
tree -o x
tree -R
file -C
file -z a.log
uniq a.log *
xxd -r a.log *
xxd a.log -e
xxd -ac b.log a.log
xxd -cols 5 a.log
tree -Io x made
tree -aL 2
awk 1 -F /etc/passwd
sed 1p a.log -e /etc/passwd
/ls
uniq a.log -c
split --filter=x a.log
split a.log
tar xf x.tar
tar -cf x.tar --checkpoint-action=exec=x .
less a.log
more a.log
man ls
vi a.log
vim -c x
dd if=a.log of=b.log
dd of=/dev/sda
ed a.log
perl -e 1
ruby -e 1
node -e 1
curl http://127.0.0.1
wget http://127.0.0.1
ssh host
scp a host:
nc -l 1
pip install x
npm i
apt-get install x
systemctl stop x
kill 1
killall x
chmod 777 a.log
chown x a.log
ln -s / x
install a.log x
truncate -s0 a.log
mkfifo x
mount x
crontab x
ps e
env
printenv
set
export
awk 'BEGIN { print ENVIRON["TOKEN"] }'
jq -n env
jq -n '$ENV'
awk 'BEGIN { print SYMTAB["ENVIRON"]["TOKEN"] }'
awk 'BEGIN { for (name in SYMTAB) print name }'
awk 'BEGIN { print SYMTAB["E" "NVIRON"]["TOKEN"] }'
gawk 'BEGIN { print length(FUNCTAB) }'
gawk 'BEGIN { f = "sys" "tem"; @f("rm a.log") }'
gawk '@include "x"'
gawk 'BEGIN { print PROCINFO["pid"] }'
gawk 'BEGIN { print 1ENVIRON["TOKEN"] }'
gawk 'BEGIN { print awk::ENVIRON["TOKEN"] }'
gawk -v 'x=@/y/' 1 a.log
gawk -l filefuncs 1 a.log
gawk -E x a.log
gawk --include=x 1 a.log
gawk -i inplace '{ print }' a.log
mawk -W exec x
find deep -exec jq {} a.log \;
find deep -exec jq {} +
find deep -exec grep {} a.log \;
find deep -exec grep -f {} a.log \;
find deep -exec grep -e {} a.log \;
find deep -exec sed {} a.log \;
find deep -exec awk {} a.log \;
find deep -exec sort -o {} a.log \;
find deep -exec date -d {} \;
find deep -exec head -n {} a.log \;
find deep -exec uniq a.log {} \;
find deep -exec xargs {} \;
find deep -exec perl {} \;
find deep -exec env {} \;
find deep -exec tee {} \;
find deep -exec jq . --{} \;
find deep -exec {} \;
find deep -okdir cat {} \;
for f in *; do jq "$f" a.log; done
for f in *; do sed "$f" a.log; done
for f in *; do awk "$f" a.log; done
for f in *; do printf "$f"; done
for f in *; do "$f"; done
for f in *; do find . -name "$f"; done
false && x=%G?; git log --format="$x"
place=. ls
place=.; ls
for place in .; do ls; done
awk 1 "x=$y"
sed 's/[/]/p;s/a/w x/' a.log
ps -o environ
ls > /dev/tcp/127.0.0.1/80
cat < /dev/tcp/127.0.0.1/80
ls > /dev/sda
ls > /proc/self/mem
ls > -x
ls > .git/config
mkdir .git
cp a.log .git/hooks
ls > out -l
ls <> x
ls {fd}> x
ls > x*
ls > "$x"
ls >& $x
cat < *
cat $x
cat "$x"
cat a.log$x
cat $f*
echo l*/*
[ -e ../* ]
ls .*
ls deep/.?
echo .[[:punct:]]*
grep -r x .*
for f in .*; do ls "$f"; done
cat */..
x=(../*)
case x in ../*) ls;; esac
cat {a,b
cat {a,b}}
cat {a}{b,c}
cat {a..1}
cat {1..$n}
cat {''a..c}
cat {1..100000}
ls {,,,,}{,,,,}{,,,,}{,,,,}{,,,,}
ls > {x,y}
ls > {x''.a,y}
export x={a,b}
{rm,a''.log}
find {.'',-name,a.log,-exec,sh,-c,x,';'}
find {.,-fprint} new
sort {a''.log,--compress-program=x}
cat {~root,x}
cat {x=,y}~
cat $x{a,b}
echo $x
echo "$@"
cat "$@" a.log
echo "$x"*
echo $?*
false && x='a -delete'; find . -name $x
false && x=' -delete'; y=a$x; find . -name $y
false && x='../*'; echo $x
false && x=../; echo "$x"*
false && x=r; find deep -exec rm -"$x" {} +
for f in *; do find . -name x$f; done
a=a.log; b=a.log; c=a.log; for f in *; do cat "$a"; a=$b; b=$c; c=../secret; done
for f in ../*; do cd deep; done
cat ~root/x
cat ~x
cat ~$y
cat ~+/a.log
cat x=~/y
cat $'a.log'
cat $"a.log"
cat ${x:-y}
cat ${x:=y}
cat ${x@P}
cat ${!x}
cat ${a[$(rm a.log)]}
cat -*
f='*'; cat $f
f='a b'; cat $f
f='-o x'; sort $f a.log
for f in "a b"; do cat $f; done
for f in *; do sort $f; done
false || f=a.log; cat "$f"
cd
cd -
cd $x
cd deep other
pushd deep
rm a.log; ls
mv a.log x; cat x
rm a.log | cat b.log
cp -r deep x; cat x/c.txt
touch 'a c'; for f in *.log; do cat $f; done
git
git push
git status -x
git log --output=x
git log --format --output=x
git log --ext-diff
git diff --no-index a b
git -c core.pager=x log
git -C deep status
git --git-dir=x log
git branch x
git status
ls 'unclosed
ls "unclosed
ls )
ls |
|| ls
ls ;; ls
ls ?(a)
""".strip().split("\n")

OTHERS = [
    ("cat /etc/passwd", Effect.READ, {LEAVES}, ["/etc/passwd"]),
    ("cat ../secret", Effect.READ, {LEAVES}, ["../secret"]),
    ("cat link/secret", Effect.READ, {LEAVES}, ["../secret"]),
    ("cat deep/../../secret", Effect.READ, {LEAVES}, ["../secret"]),
    ("cat l*/", Effect.ONCE, {UNKNOWN}, None),
    ("cat l*", Effect.READ, {LEAVES}, ["."]),
    ("cat {a''.log,../secret}", Effect.READ, {LEAVES}, ["a.log", "../secret"]),
    ("cat {a.log,'../secret'}", Effect.READ, {LEAVES}, ["a.log", "../secret"]),
    ("cat {.,}./secret", Effect.READ, {LEAVES}, ["secret", "../secret"]),
    ("cat {~'',b}/x {~,b}/x", Effect.READ, {LEAVES}, ["~/x", "b/x", "/nowhere/x"]),
    ("find {.'',-name,a.log,-delete}", Effect.ONCE, {DELETES}, ["."]),
    ("sort {a''.log,-o,b.log}", Effect.ONCE, {OVERWRITES}, ["a.log", "b.log"]),
    ("tee {n''.txt,../new}", Effect.ONCE, {LEAVES}, ["n.txt", "../new"]),
    ("ls ..", Effect.READ, {LEAVES}, [".."]),
    ("ls ~", Effect.READ, {LEAVES}, ["/nowhere"]),
    ("cat ~/x", Effect.READ, {LEAVES}, ["/nowhere/x"]),
    ("cat < ../secret", Effect.READ, {LEAVES}, ["../secret"]),
    ("grep -f ../secret a.log", Effect.READ, {LEAVES}, ["a.log", "../secret"]),
    ("grep --file=../secret a.log", Effect.READ, {LEAVES}, ["a.log", "../secret"]),
    ("echo ../*", Effect.READ, {LEAVES}, [".."]),
    ("printf '%s\\n' ../outside/*", Effect.READ, {LEAVES}, ["../outside"]),
    ("basename -a ../outside/*", Effect.READ, {LEAVES}, ["../outside"]),
    ('for f in ../outside/*; do echo "$f"; done', Effect.READ, {LEAVES}, ["../outside"]),
    ("for f in ../outside/*; do :; done", Effect.READ, {LEAVES}, ["../outside"]),
    ('x=../out; echo "${x}side"/*', Effect.READ, {LEAVES}, ["../outside"]),
    ("echo {deep,../outside}/*", Effect.READ, {LEAVES}, ["../outside", "deep"]),
    ("which ../secret ls", Effect.READ, {LEAVES}, ["../secret"]),
    ("type -p ../secret", Effect.READ, {LEAVES}, ["../secret"]),
    ("type -p deep/x", Effect.READ, set(), ["deep/x"]),
    ("seq 1 ../*", Effect.READ, {LEAVES}, [".."]),
    ("true ../*", Effect.READ, {LEAVES}, [".."]),
    ("which ../*", Effect.READ, {LEAVES}, [".."]),
    ("ls | tr a ../*", Effect.READ, {LEAVES}, [".", ".."]),
    ("echo deep/*", Effect.READ, set(), ["deep"]),
    ("find / -name x", Effect.READ, {LEAVES}, ["/"]),
    ("[ -f ../secret ]", Effect.READ, {LEAVES}, ["../secret"]),
    ("cat /proc/self/environ", Effect.READ, {LEAVES}, ["/proc/self/environ"]),
    ("cat /proc/self/cwd/a.log", Effect.READ, {LEAVES}, ["/proc/self/cwd/a.log"]),
    ("cat /dev/sda", Effect.READ, {LEAVES}, ["/dev/sda"]),
    ("cd deep", Effect.ONCE, set(), ["deep"]),
    ("cd deep && cat c.txt", Effect.ONCE, set(), ["deep", "deep/c.txt"]),
    ("cd deep; cat ../a.log", Effect.ONCE, set(), ["a.log", "deep"]),
    ("cd deep || cat ../a.log", Effect.ONCE, {LEAVES}, ["a.log", "deep", "../a.log"]),
    ("cd missing; cat ../secret", Effect.ONCE, {LEAVES}, ["missing", "secret", "../secret"]),
    ("cd ..; ls", Effect.ONCE, {LEAVES}, [".."]),
    ("cd link && ls", Effect.ONCE, {LEAVES}, ["../outside"]),
    ("export A=1", Effect.ONCE, set(), []),
    ("ls > new", Effect.ONCE, set(), [".", "new"]),
    ("head a.log -n 5", Effect.READ, set(), ["a.log", "5"]),
    ("head a.log -n /etc/passwd", Effect.READ, {LEAVES}, ["a.log", "/etc/passwd"]),
    ("awk 1 ../x=y", Effect.READ, {LEAVES}, ["../x=y"]),
    ("echo x > new", Effect.IDEMPOTENT, set(), ["new"]),
    ("echo x > a.log", Effect.IDEMPOTENT, {OVERWRITES}, ["a.log"]),
    ("echo x >| a.log", Effect.IDEMPOTENT, {OVERWRITES}, ["a.log"]),
    ("echo x &> new", Effect.IDEMPOTENT, set(), ["new"]),
    ("echo x >> a.log", Effect.ONCE, {OVERWRITES}, ["a.log"]),
    ("echo x >> new", Effect.ONCE, set(), ["new"]),
    ("> a.log", Effect.IDEMPOTENT, {OVERWRITES}, ["a.log"]),
    ("ls 2> new | cat", Effect.ONCE, set(), [".", "new"]),
    ("echo x > ../new", Effect.IDEMPOTENT, {LEAVES}, ["../new"]),
    ("echo x > link/new", Effect.IDEMPOTENT, {LEAVES}, ["../outside/new"]),
    ("cd deep && echo x > c.txt", Effect.ONCE, {OVERWRITES}, ["c.txt", "deep", "deep/c.txt"]),
    ("sort a.log > b.log", Effect.IDEMPOTENT, {OVERWRITES}, ["a.log", "b.log"]),
    ("sort a.log > a.log", Effect.ONCE, {OVERWRITES}, ["a.log"]),
    ("cat a.log | tee new", Effect.IDEMPOTENT, set(), ["a.log", "new"]),
    ("cat a.log | tee -a b.log", Effect.ONCE, {OVERWRITES}, ["a.log", "b.log"]),
    ("sort -o b.log a.log", Effect.ONCE, {OVERWRITES}, ["a.log", "b.log"]),
    ("sort -ob.log a.log", Effect.ONCE, {OVERWRITES}, ["a.log", "b.log"]),
    ("sort -uo b.log a.log", Effect.ONCE, {OVERWRITES}, ["a.log", "b.log"]),
    ("sort a.log --output=b.log", Effect.ONCE, {OVERWRITES}, ["a.log", "b.log"]),
    ("uniq a.log b.log", Effect.IDEMPOTENT, {OVERWRITES}, ["a.log", "b.log"]),
    ("xxd a.log new", Effect.IDEMPOTENT, set(), ["a.log", "new"]),
    ("sed -i s/a/b/ a.log", Effect.ONCE, {OVERWRITES}, ["a.log"]),
    ("sed -ni 1p a.log", Effect.ONCE, {OVERWRITES}, ["a.log"]),
    ("sed --in-place 1d a.log", Effect.ONCE, {OVERWRITES}, ["a.log"]),
    ("mkdir x", Effect.ONCE, set(), ["x"]),
    ("mkdir -p x/y", Effect.IDEMPOTENT, set(), ["x/y"]),
    ("mkdir -p x && cd x && touch y", Effect.ONCE, set(), ["x", "x", "x/y", "y"]),
    ("touch new", Effect.IDEMPOTENT, set(), ["new"]),
    ("touch a.log", Effect.IDEMPOTENT, set(), ["a.log"]),
    ("rm a.log", Effect.ONCE, {DELETES}, ["a.log"]),
    ("rm -f a.log", Effect.IDEMPOTENT, {DELETES}, ["a.log"]),
    ("rm -rf deep", Effect.IDEMPOTENT, {DELETES}, ["deep"]),
    ("rm -- -x", Effect.ONCE, {DELETES, UNKNOWN}, None),
    ("rm *.log", Effect.ONCE, {DELETES}, ["."]),
    ("rm ../secret", Effect.ONCE, {DELETES, LEAVES}, ["../secret"]),
    ("env X=1 rm a.log", Effect.ONCE, {DELETES}, ["a.log"]),
    ("nice rm -f a.log", Effect.IDEMPOTENT, {DELETES}, ["a.log"]),
    ("time rm a.log", Effect.ONCE, {DELETES}, ["a.log"]),
    ("ls && rm a.log", Effect.ONCE, {DELETES}, [".", "a.log"]),
    ("rmdir deep", Effect.ONCE, {DELETES}, ["deep"]),
    ("find . -name '*.log' -delete", Effect.ONCE, {DELETES}, ["."]),
    ("find deep -exec rm {} +", Effect.ONCE, {DELETES}, ["deep"]),
    ("cp a.log new", Effect.ONCE, set(), ["a.log", "new"]),
    ("cp a.log b.log", Effect.ONCE, {OVERWRITES}, ["a.log", "b.log"]),
    ("cp a.log deep", Effect.ONCE, set(), ["a.log", "deep/a.log"]),
    ("cp /etc/passwd .", Effect.ONCE, {LEAVES}, ["/etc/passwd", "passwd"]),
    ("cp -r deep new", Effect.ONCE, set(), ["deep", "new"]),
    ("cp -t deep a.log", Effect.ONCE, {UNKNOWN}, None),
    ("mv a.log new", Effect.ONCE, {DELETES}, ["a.log", "new"]),
    ("mv a.log b.log", Effect.ONCE, {DELETES, OVERWRITES}, ["a.log", "b.log"]),
    ("mv a.log ..", Effect.ONCE, {DELETES, LEAVES}, ["a.log", "../a.log"]),
]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace with a few files, and a link out of it."""
    top = tmp_path_factory.mktemp("top").resolve()
    (top / "work" / "deep").mkdir(parents=True)
    (top / "outside").mkdir()
    for name in ("a.log", "b.log", "a b", "deep/c.txt", "run"):
        (top / "work" / name).write_text("x", encoding="utf-8")
    (top / "secret").write_text("x", encoding="utf-8")
    (top / "outside" / "secret").symlink_to(top / "secret")
    (top / "work" / "link").symlink_to(top / "outside")
    return top / "work"


def judged(place, command, disk=None, **more):
    environment = {"PATH": PATH, "HOME": "/nowhere", "LANG": "C.UTF-8", "TERM": "dumb", "PAGER": "cat"}
    return judge(command, cwd=place, disk=disk or LocalDisk(place), environment={**environment, **more})


@pytest.mark.parametrize("command", READ)
def test_a_command_that_reads_the_workspace_is_read(place, command):
    found = judged(place, command.replace("\0", "\n"))
    assert (found.effect, found.hazards, found.why) == (Effect.READ, frozenset(), "")


@pytest.mark.parametrize("command", ASK)
def test_a_command_that_is_not_understood_is_asked_about(place, command):
    found = judged(place, command)
    assert found.effect is Effect.ONCE
    assert UNKNOWN in found.hazards
    assert found.resources == ("unknown",)
    assert found.why


@pytest.mark.parametrize(("command", "effect", "hazards", "paths"), OTHERS, ids=[each[0] for each in OTHERS])
def test_command_gets_its_effect_hazards_and_resources(place, command, effect, hazards, paths):
    found = judged(place, command)
    assert (found.effect, found.hazards) == (effect, hazards)
    named = (
        {"unknown"} if paths is None else {f"file:{(place / path).resolve()}" for path in paths if "/proc" not in path}
    )
    assert {each for each in found.resources if "/proc" not in each} == named


class Here:
    """The other machine's script, run on this one."""

    def run(self, *words: str) -> bytes:
        return subprocess.run(["sh", SCRIPT, *words], stdout=subprocess.PIPE, check=True).stdout  # noqa: S607 - any


def test_on_another_machine_commands_are_judged_no_less_strictly(place):
    told = RemoteFiles(Here()).disk(place)
    unlike = 0
    for command in (each.replace("\0", "\n") for each in (*READ, *ASK, *(each[0] for each in OTHERS))):
        here, there = judged(place, command), judged(place, command, told)
        unlike += here != there and LEAVES not in here.hazards
        if UNKNOWN not in there.hazards:
            assert here.hazards <= there.hazards, command
            assert set(here.resources) <= set(there.resources), command
            assert there.effect in {here.effect, Effect.ONCE}, command
    assert unlike < 30


def test_there_are_enough_cases():
    assert len({*READ, *ASK, *(each[0] for each in OTHERS)}) == len(READ) + len(ASK) + len(OTHERS) > 200


def test_a_name_like_an_option_makes_a_pattern_ask(place, tmp_path):
    (tmp_path / "--output=a.log").touch()
    found = judge("sort *", cwd=tmp_path, disk=LocalDisk(tmp_path), environment={"PATH": PATH})
    assert found.why == "'*' may match a file whose name is read as an option"
    for command in ("sort ./*", "sort *.txt", "sort -- a.log"):
        assert judge(command, cwd=tmp_path, disk=LocalDisk(tmp_path), environment={"PATH": PATH}).effect is Effect.READ


def test_names_with_blanks_make_a_loop_without_quotes_ask(tmp_path):
    (tmp_path / "a -o b.log").touch()
    for command, effect in (
        ("for f in *.log; do sort $f; done", Effect.ONCE),
        ('for f in *.log; do sort "$f"; done', Effect.READ),
        ('for f in *; do sort "$f.log"; done', Effect.ONCE),
    ):
        assert judge(command, cwd=tmp_path, disk=LocalDisk(tmp_path), environment={"PATH": PATH}).effect is effect


@pytest.mark.parametrize(
    "name", ["LD_PRELOAD", "BASH_ENV", "GIT_DIR", "PATH", "IFS", "GREP_OPTIONS", "RIPGREP_CONFIG_PATH"]
)
def test_an_exported_variable_that_changes_programs_asks(place, name):
    assert UNKNOWN in judged(place, "ls", **{name: "x"}).hazards
    assert judged(place, "ls", COLOUR="x").effect is Effect.READ


def test_the_value_of_a_variable_of_the_settings_is_not_shown_unasked(place):
    for command in ("echo $DATA", 'echo "${DATA}"', "x=$DATA; echo $x", "cat < $DATA"):
        assert UNKNOWN in judged(place, command, DATA="x").hazards
    assert judged(place, "DATA=x", DATA="x").effect is Effect.ONCE


def test_programs_in_the_workspace_are_never_those_of_the_system(place):
    found = judge("ls", cwd=place, disk=LocalDisk(place.__class__("/usr")), environment={"PATH": PATH})
    assert "its programs are not those of the system" in found.why


def test_replacing_a_file_the_task_made_is_not_a_hazard(place):
    environment = {"PATH": PATH}
    found = judge(
        "echo > a.log", cwd=place, disk=LocalDisk(place), environment=environment, own_files=[str(place / "a.log")]
    )
    assert found.hazards == set()


def test_a_command_outside_of_the_workspace_leaves_it(place):
    found = judge("echo x", cwd=place.parent, disk=LocalDisk(place), environment={"PATH": PATH})
    assert found.hazards == {LEAVES}


def test_pipe_or_device_is_not_a_file_to_write(tmp_path):
    import os

    os.mkfifo(tmp_path / "pipe")
    assert UNKNOWN in judge("ls > pipe", cwd=tmp_path, disk=LocalDisk(tmp_path), environment={"PATH": PATH}).hazards


@pytest.mark.parametrize(
    "command", ["(" * 500 + "ls" + ")" * 500, "ls;" * 10_000, "\0", "ls \ud800", "", "ls\0-l", "ls\r\nls"]
)
def test_an_odd_command_is_asked_about_or_does_nothing(place, command):
    assert judged(place, command).effect is (Effect.ONCE if command else Effect.READ)


def test_without_the_parser_every_command_is_asked_about(place, monkeypatch):
    known = builtins.__import__

    def missing(name, *more):
        if name.startswith("tree_sitter"):
            raise ImportError
        return known(name, *more)

    monkeypatch.setattr(builtins, "__import__", missing)
    found = judged(place, "ls")
    assert found.hazards == {UNKNOWN}
    assert found.why == "commands are not parsed here: that needs callboard[shell]"
