// SPDX-License-Identifier: Apache-2.0
#include "policies/balloons/balloons_notes.h"

#include <string_view>

#include "pkg/base/parse.h"
#include "policies/balloons/balloons_options.h"

namespace resmgr {
namespace {

constexpr size_t kMostNamed = 16;
constexpr size_t kMostText = 64;
constexpr std::string_view kPodResources = "podresourceapi:";

// A sentence about the first names, or none.
void Tell(std::string_view sentence, const std::vector<std::string>& names,
          std::vector<std::string>& notes) {
  if (names.empty()) return;
  std::string list;
  for (size_t i = 0; i < names.size() && i < kMostNamed; ++i)
    list += fmt::format("{}{}", i == 0 ? "" : ", ", Printable(names[i], kMostText));
  if (names.size() > kMostNamed) list += fmt::format(" and {} more", names.size() - kMostNamed);
  notes.push_back(fmt::format("policy.balloons: {}: {}", sentence, list));
}

}  // namespace

std::vector<std::string> BalloonsWithoutEffect(const ConfigNode& section) {
  const StatusOr<BalloonsOptions> options = ReadBalloonsOptions(&section);
  if (!options.ok()) return {};
  std::vector<std::string> devices;
  for (const BalloonType& type : options->types) {
    for (const std::string& device : type.close_to) {
      if (options->pod_resource_api || !device.starts_with(kPodResources)) continue;
      devices.push_back(fmt::format("{} of type {}", device, type.name));
    }
  }
  std::vector<std::string> notes;
  Tell("keys that are read without effect", options->without_effect, notes);
  Tell("devices that only the kubelet knows, which `agent.podResourceAPI: false` does not ask",
       devices, notes);
  return notes;
}

std::vector<NamedClass> BalloonsNamedClasses(const ConfigNode& section) {
  std::vector<NamedClass> named;
  const StatusOr<BalloonsOptions> options = ReadBalloonsOptions(&section);
  if (!options.ok()) return named;
  if (!options->idle_cpu_class.empty())
    named.push_back({"cpu", options->idle_cpu_class, "idleCPUClass"});
  for (const BalloonType& type : options->types) {
    const std::string where = fmt::format("balloonTypes {}", Printable(type.name, kMostText));
    AddNamed(type.classes, where, named);
    if (!type.irq_mode.empty()) named.push_back({"irq", type.irq_mode, where + ": irqMode"});
    for (const std::string& claim : type.irq_claims)
      named.push_back({"irq", claim, where + ": irqClaim"});
  }
  return named;
}

}  // namespace resmgr
