// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "policies/topology-aware/affinity.h"
#include "policies/topology-aware/options.h"

// Whatever stands in a pod's annotations can be asked.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  resmgr::Pod pod;
  pod.name = "pod";
  for (const char* const key :
       {"topologyhints", "allow.topologyhints", "memory-type", "cold-start", "prefer-shared-cpus"})
    pod.annotations.Set(std::string(key) + ".resource-policy.nri.io", text);
  pod.annotations.Set("resource-policy.nri.io/affinity", text);
  resmgr::Container container;
  container.name = "c";
  const resmgr::Preferences preferences = resmgr::ReadPreferences(pod, container.name);
  (void)preferences.hints.Accepts("device /dev/sda");
  const auto read = resmgr::PodAffinities::Read(pod.annotations);
  if (!read.ok()) return 0;
  const auto affinities = read->Of(container.name);
  if (!affinities.ok()) return 0;
  if (affinities->size() > resmgr::PodAffinities::kMaxOfOne) std::abort();
  for (const resmgr::Affinity& affinity : *affinities) {
    if (std::abs(affinity.weight) > resmgr::Affinity::kMaxWeight) std::abort();
    (void)affinity.Meets(pod, pod, container);
  }
  return 0;
}
