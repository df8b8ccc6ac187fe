// SPDX-License-Identifier: Apache-2.0
#include "pkg/model/cpu_holders.h"

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "pkg/base/count_text.h"
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

std::string DescribeHolders(std::vector<Holding> holders,
                            const std::function<std::string(const Holding&)>& text) {
  const size_t named = std::min(holders.size(), kNamedHolders);
  // Stable: of equals, the oldest ones.
  std::stable_sort(holders.begin(), holders.end(),
                   [](const Holding& a, const Holding& b) { return a.amount > b.amount; });
  std::string all;
  for (size_t i = 0; i < named; ++i) {
    const Holding& holder = holders[i];
    Add(fmt::format("{} held by {}", text(holder),
                    Printable(FullName(*holder.pod, holder.container->name), kLongestName)),
        all);
  }
  if (holders.size() > named) all += fmt::format(" and {} more", holders.size() - named);
  return all;
}

std::string DescribeCpuHolders(const Snapshot& snapshot, const CpuSet& reserved,
                               ContainerKey except) {
  std::vector<Holding> holders;
  snapshot.ForEachContainer([&](const Pod& pod, const Container& container) {
    const int cpus = container.placement.exclusive.size();
    if (cpus > 0 && container.key != except) holders.push_back({&pod, &container, cpus});
  });
  std::string text;
  if (!reserved.empty()) Add(fmt::format("{} reserved", Named(reserved)), text);
  const std::string held = DescribeHolders(std::move(holders), [](const Holding& holder) {
    return Named(holder.container->placement.exclusive);
  });
  if (!held.empty()) Add(held, text);
  return text;
}

std::string DescribeSharers(const Snapshot& snapshot, ContainerKey except) {
  int64_t asked = 0;
  int64_t containers = 0;
  snapshot.ForEachContainer([&](const Pod&, const Container& container) {
    const int64_t request = container.requirements.cpu_request.value -
                            int64_t{1000} * container.placement.exclusive.size();
    if (request <= 0 || container.key == except) return;
    asked += request;
    ++containers;
  });
  if (containers == 0) return "";
  return fmt::format("{}m asked for by {} that share{}", asked, CountText(containers, "container"),
                     containers == 1 ? "s" : "");
}

}  // namespace resmgr
