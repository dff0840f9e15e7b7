#!/bin/busybox sh
# SPDX-License-Identifier: Apache-2.0
# First process of the virtual machine of `make test-rdma`: makes the device eth0 with soft-RoCE's rxe0 on it, runs the tests with the second
# serial line as output, says of each program how it ended (scripts/test_rdma.py reads that), and switches the machine off.
/bin/busybox --install -s /bin
export PATH=/bin
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs devtmpfs /dev
mkdir /dev/shm
mount -t tmpfs tmpfs /dev/shm
exec >/dev/ttyS1 2>&1

for module in $(cat /modules/order); do insmod "/modules/$module.ko"; done
ip link set lo up
ip link add eth0 type dummy
ip addr add 10.9.9.1/24 dev eth0
ip link set eth0 mtu 9000 up
rdma link add rxe0 type rxe netdev eth0
echo "Linux $(uname -r): $(rdma link)"

run() {
  timeout 300 "$@" --gtest_color=no
  echo "$1 ended with $?"
}
# UCX connects queue pairs by packets of UD. Of soft-RoCE's it takes those between IPv6 addresses alone: the link-local one, which is GID 0.
export UCX_IB_GID_INDEX=0
export NANET_RDMA_ADDRESS=10.9.9.1 NANET_RDMA_TRANSPORTS=rc_verbs
run test_rdma --gtest_filter='Ways/Transfer.*:Ways/Later.*:Ways/Notify.*'
run test_rxe --gtest_filter='-Link.*'
run test_rxe --gtest_filter='Link.*'
poweroff -f
