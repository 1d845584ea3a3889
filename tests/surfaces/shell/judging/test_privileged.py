"""Programs with the rights of another user are found wherever their name may be."""

import re

import pytest

from callboard.messages import Hazard
from callboard.surfaces import ToolError
from callboard.surfaces.shell._base_shell import PATH
from callboard.surfaces.shell.judging._disk import LocalDisk
from callboard.surfaces.shell.judging._judge import judge
from callboard.surfaces.shell.judging._privileged import privileged

WAYS = r"""
sudo ls
/usr/bin/sudo -n ls
"su"do ls
s'u'do ls
\sudo ls
s\udo ls
$'sudo' ls
$'\x73udo' ls
$'\163udo' ls
$"sudo" ls
su\¶do ls
{sudo,ls}
{sudo,-n,ls}
s{u,}do ls
/usr/bin/su[d]o ls
/usr/bin/s?do ls
/usr/bin/sud* ls
ls; sudo ls
ls && sudo ls
ls || sudo ls
ls & sudo ls
ls | sudo tee x
X=1 sudo ls
>x sudo ls
2>x sudo ls
{fd}>x sudo ls
! sudo ls
{ sudo ls; }
( sudo ls )
if sudo -n true; then ls; fi
if true; then sudo ls; fi
while sudo ls; do :; done
for x in a; do sudo ls; done
for x in sudo; do $x ls; done
for x in ls sudo; do $x; done
case x in x) sudo ls;; esac
f() { sudo ls; }; f
function f { sudo ls; }; f
f() ( sudo ls ); f
time sudo ls
time -p sudo ls
coproc sudo ls
coproc X { sudo ls; }
command sudo ls
builtin command sudo ls
exec sudo ls
exec -a x sudo ls
eval sudo ls
eval 'sudo ls'
eval "su""do ls"
eval 'eval sudo ls'
eval "$(echo sudo ls)"
env sudo ls
env X=1 nice -n 5 sudo ls
env -i sudo ls
env -S 'sudo ls'
env -S'sudo ls'
env -Ssudo ls
env --split-string='sudo ls'
nice -n 5 sudo ls
nohup sudo ls
timeout 5 sudo ls
timeout -s KILL 5 sudo ls
stdbuf -oL sudo ls
setsid -w sudo ls
ionice -c 3 sudo ls
chrt -b 0 sudo ls
taskset 1 sudo ls
taskset -c 0 sudo ls
watch -n1 sudo ls
watch 'sudo ls'
unshare -r sudo ls
nsenter -t 1 sudo ls
chroot / sudo ls
chroot / bash -c 'sudo ls'
flock f sudo ls
flock f -c 'sudo ls'
flock cat sudo ls
strace -f sudo ls
ltrace sudo ls
busybox sudo ls
busybox sh -c 'sudo ls'
script -c 'sudo ls' /dev/null
script -qc 'sudo ls'
parallel sudo ::: ls
parallel 'sudo {}' ::: ls
/lib64/ld-linux-x86-64.so.2 /usr/bin/sudo ls
ssh host sudo ls
ssh host 'cd /; sudo ls'
su -c ls
su - root -c ls
doas ls
pkexec ls
run0 ls
runuser -u x ls
ls | xargs -0 sudo rm
echo sudo ls | xargs env
echo sudo | xargs -I% % ls
xargs sh -c 'sudo ls'
find . -exec sudo rm {} +
find . -execdir sudo ls \;
find . -exec sh -c 'sudo ls' \;
find . -ok env sudo ls \;
nice find . -exec sudo ls \;
bash -c 'sudo ls'
bash -lc "sudo ls"
sh -c 'ls && sudo ls'
bash -c "bash -c 'sudo ls'"
bash -c "bash -c \"bash -c 'sudo ls'\""
bash -c $'sudo ls'
bash -c 'x=sudo; $x ls'
bash <<< 'sudo ls'
bash <<< "sudo ls"
bash <<<$'sudo\x20ls'
sh <<EOF¶sudo ls¶EOF
sh <<'EOF'¶sudo ls¶EOF¶
cat <<EOF | bash¶sudo ls¶EOF
echo "$(sudo ls)"
echo `sudo ls`
echo "`sudo ls`"
cat <(sudo ls)
ls > >(sudo tee x)
echo 'sudo ls' | bash
echo sudo ls | sh
printf 'sudo ls\n' | bash
printf '\x73udo ls\n' | bash
echo 'sudo ls' | env bash
bash < <(echo sudo ls)
bash <(echo sudo ls)
source <(echo sudo ls)
. <(echo sudo ls)
bash -c "$(echo sudo ls)"
$(echo sudo) ls
$(which sudo) ls
"$(command -v sudo)" ls
x=sudo; $x ls
x=sudo; "$x" ls
x=su; ${x}do ls
a=su b=do; $a$b ls
${x:-sudo} ls
set -- sudo ls; "$@"
x=(sudo ls); "${x[@]}"
read x <<< sudo; $x ls
printf -v x sudo; $x ls
alias s=sudo; s ls
alias s='sudo ls'
trap 'sudo ls' EXIT
hash -p /usr/bin/sudo ls; ls
python3 -c 'import os; os.system("sudo ls")'
python3 -c "import os; os.system('sudo ls')"
python3 -c 'import subprocess; subprocess.run(["sudo", "ls"])'
python3 -c 'import os; os.execvp("sudo", ["sudo", "ls"])'
perl -e 'exec "sudo", "ls"'
perl -e 'system("sudo ls")'
perl -e '`sudo ls`'
ruby -e 'exec "sudo ls"'
node -e 'require("child_process").execSync("sudo ls")'
awk 'BEGIN { system("sudo ls") }'
awk 'BEGIN { "sudo ls" | getline x }'
awk '{ print | "sudo tee x" }' a.log
sed '1e sudo ls' a.log
expect -c 'spawn sudo ls'
vim -c '!sudo ls'
tar cf x.tar . --checkpoint-action=exec=sudo
rsync --rsync-path='sudo rsync' a b:
PAGER='sudo less' git log
GIT_PAGER=sudo git log
EDITOR=sudo crontab -e
echo 'sudo ls' > >(bash)
echo 'sudo ls' | (bash)
echo 'sudo ls' | if true; then sh; fi
{ echo sudo ls; } | bash
exec 3<<< 'sudo ls'; bash <&3
sh -c '$0' sudo
bash -c '"$@"' _ sudo ls
PROMPT_COMMAND='sudo ls' bash -i
bash --rcfile <(echo sudo ls) -i
sudo>x
sudo|cat
x[0]=sudo; ${x[0]} ls
: ${x:=sudo}; $x ls
x='sudo ls'; eval "$x"
for c in 'sudo ls'; do bash -c "$c"; done
. /dev/stdin <<< 'sudo ls'
capsh -- -c 'sudo ls'
start-stop-daemon --start --exec /usr/bin/sudo
unknown-runner --flag sudo ls
tmux new 'sudo ls'
foo bash -c 'env sudo ls'
docker exec c sudo ls
systemd-run sudo ls
python3 - <<EOF¶import os¶os.system('sudo ls')¶EOF
at now <<< 'sudo ls'
while read c; do $c; done <<< 'sudo ls'
echo $((1<<2)); sudo ls
for ((i=0;i<1;i++)); do sudo ls; done
"${x:-'}"; sudo ls #'
echo $[1<<2]¶sudo ls¶2]¶
echo "$(case x in x) sudo ls;; esac)"
echo "$(case y in x) ls;; y) sudo ls;; esac)"
echo $(case x in x) ls; esac); sudo ls
x[1<<2]=3¶sudo ls¶2]=3
cat <<A¶x¶A¶sudo ls
cat <<-A¶x¶	A¶sudo ls
cat <<"A B"¶sudo¶A B¶sudo ls
cat <<A¶$(sudo ls)¶A
cat <<A <<B¶x¶A¶x¶B¶sudo ls
cat <<A¶x¶ A¶sudo ls
""".strip().split("\n")
"""Ways to run sudo; the sign ¶ is a line break."""
BUILT = r"""
cp /usr/bin/sudo x; ./x ls
ln -s /usr/bin/sudo x; ./x ls
echo c3VkbyBscw== | base64 -d | bash
x=$(printf 'su%s' do); $x ls
echo su do | tr -d ' ' | bash
s() { "$@"; }; s $(rev <<< odus) ls
tar xf x.tar; ./x
echo 'sudo ls' > f; bash f
IFS=_; x=sudo_ls; $x
git -c alias.x='!sudo ls' x
sort --compress-program=sudo x
rg --pre sudo x
sed 's/x/sudo ls/e' x
bash x.sh
make install
""".strip().split("\n")
"""Ways in which the name is put together, or is in a file: these are unknown to the judge."""
DATA = r"""
ls
grep sudo a.log
echo sudo
echo sudo | cat
find . -name sudo
xargs grep sudo
ls | xargs grep -l sudo
bash -c 'grep sudo x'
bash -c "echo sudo"
cat sudo
apt-get install sudo
apt-get install -y sudo curl
command -v sudo
which sudo || echo none
type sudo
man su
ls # sudo rm
ls # it's sudo
git commit -m 'sudo is bad'
git log --author=su
usermod -aG sudo bob
getent group sudo
[ -x /usr/bin/sudo ] && echo yes
test -x /usr/bin/sudo
[[ -x /usr/bin/sudo ]]
case $x in sudo) ls;; su|doas) pwd;; esac
case sudo in x) ls;; esac
awk '/sudo/ { print $1 }' auth.log
awk '$5 == "sudo"' auth.log
sed -n '/sudo/p' auth.log
sed 's/sudo/doas/' x
cat > readme.md <<'EOF'¶Use it so:¶  sudo ls¶sudo apt install x¶EOF¶ls
for f in sudo su; do echo "$f"; done
pytest tests/su
python3 -c 'print(1)'
python3 sudo.py
./build.sh "$x"
env grep sudo x
timeout 5 grep -c sudo x
find . -exec grep -l sudo {} +
ps aux | grep sudo | wc -l
echo "use sudo to install" > notes
tar xf x.tar
make
x=$(ls); echo "$x"
ls -su
echo 'sudo ls' | grep bash
sg --pattern 'f($x)' -l python
x=(deep/*); echo "${x[@]}"
du -su
cat <<'A' > x¶$(sudo ls)¶A¶ls
""".strip().split("\n")
"""Commands with the name as a text, a pattern or the name of a file."""


@pytest.mark.parametrize("command", WAYS)
def test_a_way_to_run_sudo_is_recognized(command):
    assert privileged(command.replace("¶", "\n"))


@pytest.mark.parametrize("name", ["doas", "pkexec", "run0", "su", "runuser", "sudoedit", "gosu"])
def test_every_privileged_program_is_recognized_in_every_notation(name):
    literal = [command.replace("¶", "\n") for command in WAYS if re.search(r"(?<!\w)sudo(?!\w)", command)]
    missed = [command for command in literal if not privileged(re.sub(r"(?<!\w)sudo(?!\w)", name, command))]
    assert (missed, len(literal) > 100) == ([], True)


@pytest.mark.parametrize("command", [*WAYS, *BUILT])
def test_a_way_to_run_sudo_is_refused_or_unknown(tmp_path, command):
    text = command.replace("¶", "\n")
    judged = judge(text, cwd=tmp_path, disk=LocalDisk(tmp_path), environment={"PATH": PATH})
    assert privileged(text) or Hazard.UNKNOWN in judged.hazards
    assert Hazard.UNKNOWN in judged.hazards, "the judge takes it for a command that it understands"


@pytest.mark.parametrize("command", ["ssh host", "ssh -p 22 host", "chroot /", "flock f"])
def test_program_without_its_command_is_not_refused(command):
    assert not privileged(command)


@pytest.mark.parametrize("command", DATA)
def test_a_name_that_is_data_is_not_refused(command):
    assert not privileged(command.replace("¶", "\n"))


@pytest.mark.parametrize(
    "text",
    [
        "eval " * 18_000,
        "(" * 50_000,
        "`" * 9_999,
        '"$(' * 30_000,
        "${" * 50_000,
        "<<a " * 5_000 + "\n" * 50,
        "{1..999} " * 10_000,
        "bash -c '" * 9_000,
        "| " * 50_000,
        "x[" * 50_000,
        "'",
        "",
    ],
    ids=lambda text: text[:8],
)
def test_no_text_takes_long_and_a_name_behind_it_is_recognized(text):
    assert not privileged(text)
    assert privileged(f"sudo ls; {text}")


@pytest.mark.parametrize("tool", ["run", "start"])
def test_privileged_command_is_refused_before_it_runs_without_approval(box, tool):
    command = "touch made; env sudo -n true"
    with pytest.raises(ToolError, match="'sudo' is never run: commands run with the rights of this user only"):
        box.do(tool, command=command)
    assert not (box.work / "made").exists()
    assert not box.look().window["background"]
    assert box.surface.hazards(box.target, tool, {"command": command, "cwd": ""}, ()) == set()
