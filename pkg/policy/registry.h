// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "pkg/base/status.h"
#include "pkg/base/units.h"
#include "pkg/config/config_key.h"
#include "pkg/config/config_node.h"
#include "pkg/config/policy_classes.h"
#include "pkg/config/runtimes_config.h"
#include "pkg/policy/policy.h"
#include "pkg/topology/machine.h"

namespace resmgr {

// All that a policy may know when it is made. The machine must outlive the policy; the rest is
// needed only during the creation.
struct PolicyContext {
  const Machine& machine;
  CpuSet available;  // CPUs that may be placed on at all: online and allowed
  CpuSet reserved;   // part of `available`, never granted exclusively; may be empty
  const ConfigNode* section = nullptr;       // the policy's own configuration; nullptr without one
  const RuntimesConfig* runtimes = nullptr;  // nullptr: no RuntimeClass is configured
  MilliCpu unreserved{};  // as in PolicyCpus: the part of the reserved CPUs that pods may request
  CpuSet offline{};       // CPUs of the machine that are offline, which a section may name
};

// Describes and makes one policy. Its name is the value of `Active`.
struct PolicyFactory {
  std::string_view name;
  std::string_view description;  // one line for -list-policies
  // InvalidArgument for a wrong section ("FILE:LINE: path: ...") or for options or CPU sets that do
  // not fit the machine.
  StatusOr<std::unique_ptr<Policy>> (*create)(const PolicyContext& context);
  // The same errors for a section alone, whether the policy is the active one or not. `keys`, which
  // may be nullptr, gets the description of every option with its value or default. null: the
  // policy has no options.
  Status (*read_section)(const ConfigNode& section, std::vector<ConfigKey>* keys) = nullptr;
  // Sentences that name the keys of a section without effect, for the log and `config check`.
  // null: all keys have an effect.
  std::vector<std::string> (*without_effect)(const ConfigNode& section) = nullptr;
  // The classes that a checked section names. null: none.
  std::vector<NamedClass> (*named_classes)(const ConfigNode& section) = nullptr;
};

// The policies that a binary was built with, from an explicit list (the daemon's is
// cmd/cri-resmgr/builtin_policies.cc). Immutable.
class PolicyRegistry {
 public:
  // The factories in the order of the list. If a name is there twice, the first one is found.
  explicit PolicyRegistry(std::span<const PolicyFactory> factories);

  std::span<const PolicyFactory> factories() const { return factories_; }
  std::vector<std::string> Names() const;
  // nullptr when there is no such policy.
  const PolicyFactory* Find(std::string_view name) const;
  // NotFound names the known policies.
  StatusOr<std::unique_ptr<Policy>> Create(std::string_view name,
                                           const PolicyContext& context) const;

 private:
  std::vector<PolicyFactory> factories_;
};

}  // namespace resmgr
