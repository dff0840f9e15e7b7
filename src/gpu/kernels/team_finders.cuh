// SPDX-License-Identifier: Apache-2.0
// TeamFinder of every kind: the general one and all its specialisations.
#pragma once

#include "gpu/kernels/team_almagest.cuh"
#include "gpu/kernels/team_finder.cuh"
#include "gpu/kernels/team_histogram.cuh"
#include "gpu/kernels/team_math.cuh"
#include "gpu/kernels/team_mixture.cuh"
#include "gpu/kernels/team_triplets.cuh"
