#!/bin/busybox sh
# First process of the guest (numa_guest.py). Runs a cluster with its memory bound to NUMA nodes, and
# one without, and sends what the kernel shows of their memory to the second serial port.
export PATH=/bin HOME=/tmp XDG_RUNTIME_DIR=/tmp 
busybox mkdir -p /proc /sys /dev /tmp /data
busybox mount -t proc none /proc
busybox --install -s /bin
mount -t sysfs none /sys
mount -t devtmpfs none /dev
mkdir -p /dev/shm
mount -t tmpfs none /dev/shm
mount -t tmpfs none /data
ip link set lo up

send() { cat >/dev/ttyS1; }

# section <name> <file>: sends a file with a heading.
section() {
  { echo "@@ $1"; cat "$2"; echo; } 2>/dev/null | send
}

# step <words...>: runs a command, and sends its output if it fails.
step() {
  echo "step: $*"
  "$@" >/tmp/step 2>&1 || { echo "exit code $?" >>/tmp/step; section "failed $*" /tmp/step; stop; }
}

stop() {
  echo "@@ end" | send
  sleep 1
  poweroff -f
  exec sleep 60
}

dump() {
  atoll status --json -c /guest.toml >/tmp/status
  section status /tmp/status
  section report /tmp/report.json
  for pid in $(pidof atoll-node); do
    section "numa_maps $pid" "/proc/$pid/numa_maps"
    section "maps $pid" "/proc/$pid/maps"
    for task in /proc/"$pid"/task/*; do
      echo "$(cat "$task/comm"):$(grep Cpus_allowed_list "$task/status" | cut -f 2)"
    done >/tmp/tasks
    section "tasks $pid" /tmp/tasks
  done
}

# measure <name> <prefix...>: runs a cluster, starting it with a prefix of the command.
measure() {
  name=$1
  shift
  rm -rf /data/* /tmp/report.json
  step "$@" atoll up -c /guest.toml
  step atoll bench ycsb prepare -c /guest.toml --records 20000
  step atoll snapshot take -c /guest.toml
  step atoll down -c /guest.toml
  step "$@" atoll up -c /guest.toml
  # Updates fill pools and log buffers, and reads of the snapshot fill the caches.
  step atoll bench ycsb run -c /guest.toml --mix 50:50:0:0:0 --remote-percent 0 --seconds 3 \
    --warmup 0 --json /tmp/report.json
  echo "@@ run $name" | send
  dump
  step atoll down -c /guest.toml
}

measure bound busybox env
export ATOLL_MEMORY_NUMA_BIND=false
# On the CPUs of NUMA node 0 only, so that the kernel places all memory there.
measure unbound busybox taskset 3
stop
