// SPDX-License-Identifier: Apache-2.0
#include "pkg/state/state_label.h"

#include <optional>

#include <fmt/format.h>

#include "pkg/base/status.h"
#include "pkg/topology/cpu_set.h"

namespace resmgr {

namespace {

// Former versions skip labels whose names they do not know.
constexpr std::string_view kHardware = "hardware";
constexpr std::string_view kParts = "parts";
constexpr char kBetween = ' ';

std::string PartsOf(const Machine& machine) {
  CpuSet cpus;
  for (const Cpu& cpu : machine.cpus())
    cpus.Add(cpu.id);
  NodeSet nodes;
  for (const NumaNode& node : machine.nodes())
    nodes.Add(node.id);
  return fmt::format("{}{}{}", cpus.ToString(), kBetween, nodes.ToString());
}

template <typename Set>
bool Has(std::string_view all, std::string_view some) {
  const StatusOr<Set> present = Set::Parse(all);
  const StatusOr<Set> saved = Set::Parse(some);
  return present.ok() && saved.ok() && !saved->empty() && saved->IsSubsetOf(*present);
}

bool HasParts(std::string_view all, std::string_view some) {
  const size_t end_of_all = all.find(kBetween), end_of_some = some.find(kBetween);
  if (end_of_all == std::string_view::npos || end_of_some == std::string_view::npos) return false;
  return Has<CpuSet>(all.substr(0, end_of_all), some.substr(0, end_of_some)) &&
         Has<NodeSet>(all.substr(end_of_all + 1), some.substr(end_of_some + 1));
}

}  // namespace

StateLabel::StateLabel(const Machine& the_machine)
    : machine(the_machine.Fingerprint()),
      hardware(HardwareFingerprint(the_machine)),
      parts(PartsOf(the_machine)) {}

std::array<std::pair<std::string_view, std::string_view>, 3> StateLabel::Named() const {
  return {{{"", machine}, {kHardware, hardware}, {kParts, parts}}};
}

bool StateLabel::Accepts(std::string_view name, std::string_view saved) const {
  if (name.empty()) return saved == machine;
  if (name == kHardware) return !hardware.empty() && saved == hardware;
  return name == kParts && HasParts(parts, saved);
}

}  // namespace resmgr
