// SPDX-License-Identifier: Apache-2.0
#include "pkg/model/cpu_holders.h"

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "pkg/base/parse.h"
#include "pkg/base/status.h"

namespace resmgr {
namespace {

// `kubectl describe pod` shows one line.
constexpr size_t kNamedHolders = 3;
constexpr size_t kLongestName = 128;

void Add(std::string_view what, std::string& text) {
  if (!text.empty()) text += ", ";
  text += what;
}

std::string Named(const CpuSet& cpus) {
  return fmt::format("CPU{} {}", cpus.size() == 1 ? "" : "s", cpus.ToString());
}

}  // namespace

std::string DescribeCpuHolders(const Snapshot& snapshot, const CpuSet& reserved,
                               ContainerKey except) {
  struct Holder {
    const Pod* pod;
    const Container* container;
    int cpus;
  };
  std::vector<Holder> holders;
  snapshot.ForEachContainer([&](const Pod& pod, const Container& container) {
    const int cpus = container.placement.exclusive.size();
    if (cpus > 0 && container.key != except) holders.push_back({&pod, &container, cpus});
  });
  const size_t named = std::min(holders.size(), kNamedHolders);
  // Stable: of equals, the oldest ones.
  std::stable_sort(holders.begin(), holders.end(),
                   [](const Holder& a, const Holder& b) { return a.cpus > b.cpus; });
  std::string text;
  if (!reserved.empty()) Add(fmt::format("{} reserved", Named(reserved)), text);
  for (size_t i = 0; i < named; ++i) {
    const auto& [pod, container, cpus] = holders[i];
    Add(fmt::format("{} held by {}", Named(container->placement.exclusive),
                    Printable(FullName(*pod, container->name), kLongestName)),
        text);
  }
  if (holders.size() > named) text += fmt::format(" and {} more", holders.size() - named);
  return text;
}

}  // namespace resmgr
