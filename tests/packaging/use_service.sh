#!/bin/bash
# Uses the service atoll@main as an administrator does. Runs as root in a booted system with the
# packages installed (packages_test.py), and ends with exit code 0 if all is as it should be.
set -euxo pipefail

config=/etc/atoll/main.toml
property() { systemctl show atoll@main --property="$1" --value; }
as_atoll() { runuser -u atoll -- atoll "$@" -c $config; }
wait_for() { until "$@"; do sleep 0.1; done; }  # the caller of this script limits the time
has_record() { [ "$(as_atoll kv get people alice)" = 100 ]; }
is_dead() { [ "$(property ActiveState)" = "$1" ]; }

systemctl start atoll@main  # returns when the cluster serves requests
[[ $(property StatusText) == "runs: 1 nodes"* ]]
atoll status -c $config | grep healthy
atoll storage create people --type mastertree -c $config
as_atoll kv put people alice 100

# The launcher restarts a failed node, and systemd a failed launcher.
node=$(pgrep atoll-node)
kill -9 "$node"
wait_for test ! -d "/proc/$node"
wait_for has_record
launcher=$(property MainPID)
kill -9 "$launcher"
wait_for test ! -d "/proc/$launcher"
wait_for has_record
[ "$(property NRestarts)" = 1 ]

systemctl stop atoll@main
is_dead inactive
[ "$(property Result)" = success ]

# A wrong config: the start fails, and systemd does not try again.
sed -i 's/count = 1/count = 0/' $config
if systemctl start atoll@main; then exit 1; fi
is_dead failed
[ "$(property ExecMainStatus)" = 78 ]
sed -i 's/count = 0/count = 1/' $config
systemctl start atoll@main
has_record

# Without the package the cluster is stopped. Its data are never removed.
dpkg --remove atoll-dev atoll-server  # atoll-dev depends on the server
if pgrep atoll; then exit 1; fi
test -e $config
dpkg --purge atoll-server
test ! -e $config
test -d /var/lib/atoll/main
