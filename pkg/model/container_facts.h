// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "pkg/model/container.h"
#include "pkg/model/pod.h"
#include "pkg/model/snapshot.h"

namespace resmgr {

// Facts about a container that are only shown: they do not influence its placement, and are
// computed on demand.

// Resources other than cpu and memory by their Kubernetes names: huge pages ("hugepages-2Mi") in
// bytes, extended resources ("example.com/device") in pieces. If the webhook's annotation names the
// container, the annotation counts; else the request's limits of huge pages. An annotation that
// cannot be read counts as none.
std::map<std::string, int64_t> OtherResources(const Pod& pod, const Container& container);

// The role of a container. It is known only from the webhook's annotation, since CRI messages do
// not have it.
enum class ContainerRole {
  kUnknown,  // no annotation names it; ephemeral containers have no resources and are never named
  kRegular,
  kInit,
  kSidecar,  // an init container that runs beside the regular ones
};
std::string_view ToString(ContainerRole role);  // "init", ...; "" when not known
ContainerRole RoleOf(const Snapshot& snapshot, const Pod& pod, const Container& container);

// The reason why CPUs are not free, for a refusal: "CPU 0 reserved, CPU 1 held by
// default/dsp/main". If there are many holders, those with the most CPUs are named and the rest is
// counted: "and 5 more". Empty if all are free. The container `except` does not count.
std::string DescribeCpuHolders(const Snapshot& snapshot, const CpuSet& reserved,
                               ContainerKey except);

// A container, and how much of a resource it has.
struct Holding {
  const Pod* pod;
  const Container* container;
  int64_t amount;
};
// The same for other amounts: "2 GiB held by default/db/main and 5 more"; `text` formats one
// holder's amount. The caller leaves out holders with nothing.
std::string DescribeHolders(std::vector<Holding> holders,
                            const std::function<std::string(const Holding&)>& text);

// How much CPU time containers request of CPUs that they share: "2500m asked for by 5 containers
// that share". Empty if there are no such containers.
std::string DescribeSharers(const Snapshot& snapshot, ContainerKey except);

}  // namespace resmgr
