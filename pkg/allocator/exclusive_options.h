// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "pkg/base/status.h"
#include "pkg/config/config_section.h"
#include "pkg/topology/machine.h"

namespace resmgr {

// The configuration of how CPUs are chosen for exclusive use. Names and meaning of the options up
// to `prefer_align_cpus_by_uncorecache` are those of the kubelet's CPU Manager policy options
// (Kubernetes 1.33), except where noted.
struct ExclusiveOptions {
  // Grants whole physical cores only (KEP-2625).
  bool full_pcpus_only = false;
  // Takes the same number of CPUs from each of as few NUMA nodes as can hold them (KEP-2902).
  bool distribute_cpus_across_numa = false;
  // Takes threads of different cores (KEP-4176).
  bool distribute_cpus_across_cores = false;
  // Takes CPUs of one package if one can hold them all (KEP-3327). The kubelet widens the hints of
  // its topology manager to packages; here the option decides the choice itself.
  bool align_by_socket = false;
  // Takes whole L3 groups first (KEP-4800).
  bool prefer_align_cpus_by_uncorecache = false;
  // Exclusive containers run without CFS quota (kubelet: DisableCPUQuotaWithExclusiveCPUs).
  bool lift_quota = true;
  // Takes CPUs that the kernel isolates before ordinary ones, for every container. Not
  // described by DescribeExclusiveOptions.
  bool prefer_isolated = false;
};

// The map of options: the kubelet's names, and cpu-quota: lift | keep. Options that exclude each
// other are errors.
void DescribeExclusiveOptions(ConfigSection& section, ExclusiveOptions& options);

// kInvalidArgument if the options cannot be met on this machine.
Status CheckExclusiveOptions(const Machine& machine, const ExclusiveOptions& options);

}  // namespace resmgr
