// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "pkg/base/units.h"
#include "pkg/config/config_node.h"
#include "pkg/config/map_reader.h"

namespace resmgr {

// The runtime of -runtime-socket, in `runtimeClasses` and wherever runtimes are named.
inline constexpr std::string_view kDefaultRuntime = "default";

// A further runtime behind the relay.
struct RuntimeConfig {
  std::string socket{};  // an absolute path

  friend bool operator==(const RuntimeConfig&, const RuntimeConfig&) = default;
};

// What CPUs and memory nodes are set for: each container, the pod sandbox alone (of a virtual
// machine or a kernel in user space, whose containers have no cgroups that count), or nothing.
enum class Pinning { kContainer, kSandbox, kNone };
std::string_view ToString(Pinning pinning);

// What a pod costs beside its containers, where the kubelet does not say so.
struct OverheadConfig {
  MilliCpu cpu{};
  Bytes memory{};

  friend bool operator==(const OverheadConfig&, const OverheadConfig&) = default;
};

// How pods of one RuntimeClass handler are treated. A handler without an entry is treated as one
// with an empty entry.
struct RuntimeClassConfig {
  std::string runtime{kDefaultRuntime};  // which runtime makes its pod sandboxes
  Pinning pinning = Pinning::kContainer;
  bool hooks = true;  // hook servers are asked about its pods
  OverheadConfig overhead{};
  // The handler that the runtime is given in place of this one, which is then an alias. "" is the
  // runtime's default handler; nullopt: this is no alias.
  std::optional<std::string> handler{};

  friend bool operator==(const RuntimeClassConfig&, const RuntimeClassConfig&) = default;
};

// The modules `runtimes` and `runtimeClasses`.
struct RuntimesConfig {
  // A call that goes to all runtimes needs a connection to each, for each client.
  static constexpr size_t kMostRuntimes = 16;
  // Each handler is a line in the replies to Status, which the kubelet asks for every few seconds.
  static constexpr size_t kMostClasses = 256;

  std::map<std::string, RuntimeConfig, std::less<>> runtimes{};  // by name, without `default`
  std::map<std::string, RuntimeClassConfig, std::less<>>
      classes{};  // by handler; "": none is named

  // Of a pod with this handler.
  const RuntimeClassConfig& ClassOf(std::string_view handler) const;

  friend bool operator==(const RuntimesConfig&, const RuntimesConfig&) = default;
};

// Read the modules `runtimes` and `runtimeClasses`, in this order: a class may name those runtimes
// alone.
void ReadRuntimes(MapReader& runtimes, RuntimesConfig& config);
void ReadRuntimeClasses(MapReader& classes, RuntimesConfig& config);
// The same, for printing: with every option.
ConfigNode RuntimesNode(const RuntimesConfig& config);
ConfigNode RuntimeClassesNode(const RuntimesConfig& config);

}  // namespace resmgr
