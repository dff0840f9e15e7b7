#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A field swept by the ranks of a Slurm job: `sbatch examples/stencil_slurm.sh`. Slurm starts the ranks and says which is which;
# the data goes over UCX. Anything after the script's name is passed on: `sbatch examples/stencil_slurm.sh --sweeps 5000`.
#SBATCH --job-name=stencil
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=2
#SBATCH --cpus-per-task=8
#SBATCH --time=00:30:00
set -euo pipefail

# Rank 0 runs on the job's first machine and listens there; the ranks recognise each other by a secret of this job.
first=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
NANET_STENCIL_SECRET=$(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')
export NANET_STENCIL_SECRET

# Between machines the edges go over RDMA hardware; where there is none, and all who reach the network are trusted, add --trust-network:
# UCX's TCP is used then. The printed path says what is. All ranks get the same options, or none of them begins.
# The port is of the job, below those that a kernel gives to whoever asks for any.
# With Open MPI instead of srun: mpirun -x NANET_STENCIL_SECRET nanet stencil --ranks env ...
srun --kill-on-bad-exit=1 nanet stencil --ranks env --rendezvous "$first:$((20000 + SLURM_JOB_ID % 12000))" \
  --size 65536 --dtype fp32 --sweeps 1000 --norm-every 100 --checkpoint field.h5 --checkpoint-every 500 --plot field.png "$@"
