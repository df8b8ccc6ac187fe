// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "pkg/base/units.h"
#include "pkg/config/config_section.h"

namespace resmgr {

// The name of -runtime-socket's runtime, in `runtimeClasses` and wherever runtimes are named.
inline constexpr std::string_view kDefaultRuntime = "default";

// A further runtime behind the relay.
struct RuntimeConfig {
  std::string socket{};  // an absolute path

  friend bool operator==(const RuntimeConfig&, const RuntimeConfig&) = default;
};

// The scope of CPUs and memory nodes: each container, the pod sandbox alone (for a virtual machine
// or a kernel in user space, whose containers have no effective cgroups), or nothing.
enum class Pinning { kContainer, kSandbox, kNone };
std::string_view ToString(Pinning pinning);

// The overhead of a pod besides its containers, if the kubelet does not report it.
struct OverheadConfig {
  MilliCpu cpu{};
  Bytes memory{};

  friend bool operator==(const OverheadConfig&, const OverheadConfig&) = default;
};

// The treatment of pods with one RuntimeClass handler. A handler without an entry is treated like
// one with an empty entry.
struct RuntimeClassConfig {
  std::string runtime{kDefaultRuntime};  // the runtime that creates its pod sandboxes
  Pinning pinning = Pinning::kContainer;
  bool hooks = true;  // whether hook servers are asked about its pods
  OverheadConfig overhead{};
  // The handler that the runtime gets instead of this one, which is an alias then. "" is the
  // runtime's default handler; nullopt: not an alias.
  std::optional<std::string> handler{};

  friend bool operator==(const RuntimeClassConfig&, const RuntimeClassConfig&) = default;
};

// The modules `runtimes` and `runtimeClasses`.
struct RuntimesConfig {
  // A call that goes to all runtimes needs a connection to each, for each client.
  static constexpr size_t kMostRuntimes = 16;
  // Each handler is a line in the replies to Status, which the kubelet requests every few seconds.
  static constexpr size_t kMostClasses = 256;

  std::map<std::string, RuntimeConfig, std::less<>> runtimes{};  // by name, without `default`
  std::map<std::string, RuntimeClassConfig, std::less<>>
      classes{};  // by handler; "": pods without one

  // The class of a pod with this handler.
  const RuntimeClassConfig& ClassOf(std::string_view handler) const;

  friend bool operator==(const RuntimesConfig&, const RuntimesConfig&) = default;
};

// The modules `runtimes` and `runtimeClasses`, in this order: a class may name only these runtimes.
void DescribeRuntimes(ConfigSection& root, RuntimesConfig& config);

}  // namespace resmgr
