// SPDX-License-Identifier: Apache-2.0
#include "pkg/config/runtimes_config.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "pkg/base/parse.h"
#include "pkg/base/suggest.h"
#include "pkg/kube/quantity.h"
#include "pkg/sys/unix_socket.h"

namespace resmgr {

namespace {

// The limit of a Kubernetes object's name; a handler is a DNS label.
constexpr size_t kLongestName = 63;

struct NamedPinning {
  std::string_view name;
  Pinning pinning;
};
constexpr std::array kPinnings = {
    NamedPinning{"container", Pinning::kContainer},
    NamedPinning{"sandbox", Pinning::kSandbox},
    NamedPinning{"none", Pinning::kNone},
};

// Names occur in log lines, errors and labels of metrics.
bool IsName(std::string_view name) {
  const auto is_of_name = [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' ||
           c == '_' || c == '.';
  };
  return !name.empty() && name.size() <= kLongestName && std::ranges::all_of(name, is_of_name);
}

Status CheckName(std::string_view name, std::string_view what) {
  if (IsName(name)) return OkStatus();
  return InvalidArgument("\"{}\" is not a valid {}: use up to {} letters, digits and any of - _ .",
                         Printable(name, 64), what, kLongestName);
}

Status CheckSocket(const RuntimesConfig& config, std::string_view name, const std::string& socket) {
  if (!socket.starts_with('/')) return InvalidArgument("is not an absolute path");
  RESMGR_RETURN_IF_ERROR(CheckUnixPath(socket));
  for (const auto& [other, runtime] : config.runtimes) {
    if (other != name && runtime.socket == socket) {
      return InvalidArgument("is the socket of {}, too", other);
    }
  }
  return OkStatus();
}

Status ReadRuntime(std::string_view name, MapReader& runtime, RuntimesConfig& config) {
  RESMGR_RETURN_IF_ERROR(CheckName(name, "runtime's name"));
  if (name == kDefaultRuntime) {
    return InvalidArgument("{} is the runtime of -runtime-socket", kDefaultRuntime);
  }
  if (config.runtimes.size() >= RuntimesConfig::kMostRuntimes) {
    return InvalidArgument("has more than {} runtimes", RuntimesConfig::kMostRuntimes);
  }
  std::string& socket = config.runtimes[std::string(name)].socket;
  runtime.Parse("Socket", [&](std::string_view text, const std::string&) -> Status {
    socket = StripUnixPrefix(text);
    return CheckSocket(config, name, socket);
  });
  const ConfigNode* given = runtime.Node("Socket");
  if (given == nullptr || given->kind == ConfigNode::Kind::kNull) {
    return InvalidArgument("{} needs a Socket", name);
  }
  return OkStatus();
}

void ReadOverhead(MapReader& overhead, OverheadConfig& config) {
  overhead.Parse("cpu", [&config](std::string_view text, const std::string&) -> Status {
    RESMGR_ASSIGN_OR_RETURN(config.cpu, ParseMilliCpu(text));
    return OkStatus();
  });
  overhead.Parse("memory", [&config](std::string_view text, const std::string&) -> Status {
    RESMGR_ASSIGN_OR_RETURN(config.memory, ParseBytes(text));
    return OkStatus();
  });
}

Status CheckRuntime(const RuntimesConfig& config, std::string_view name) {
  if (name == kDefaultRuntime || config.runtimes.contains(name)) return OkStatus();
  std::vector<std::string_view> known{kDefaultRuntime};
  for (const auto& [runtime, settings] : config.runtimes)
    known.push_back(runtime);
  std::string hint = DidYouMean(name, known);
  if (hint.empty()) hint = fmt::format("; there are {}", fmt::join(known, ", "));
  return InvalidArgument("there is no runtime \"{}\"{}", Printable(name, 64), hint);
}

Status ReadPinning(std::string_view text, Pinning& pinning) {
  for (const NamedPinning& known : kPinnings) {
    if (!EqualsIgnoreCase(known.name, text)) continue;
    pinning = known.pinning;
    return OkStatus();
  }
  return InvalidArgument("\"{}\" is not one of container, sandbox, none", Printable(text, 64));
}

void ReadClass(MapReader& reader, const RuntimesConfig& config, RuntimeClassConfig& settings) {
  reader.Parse("Runtime", [&](std::string_view text, const std::string&) {
    settings.runtime = text;
    return CheckRuntime(config, text);
  });
  reader.Parse("Pinning", [&](std::string_view text, const std::string&) {
    return ReadPinning(text, settings.pinning);
  });
  reader.Bool("Hooks", settings.hooks);
  reader.Map("Overhead",
             [&settings](MapReader& overhead) { ReadOverhead(overhead, settings.overhead); });
  reader.Parse("Handler", [&](std::string_view text, const std::string&) {
    settings.handler = text;
    return text.empty() ? OkStatus() : CheckName(text, "handler");
  });
}

Status ReadNamedClass(std::string_view handler, MapReader& reader, RuntimesConfig& config) {
  if (!handler.empty()) RESMGR_RETURN_IF_ERROR(CheckName(handler, "handler"));
  if (config.classes.size() >= RuntimesConfig::kMostClasses) {
    return InvalidArgument("has more than {} handlers", RuntimesConfig::kMostClasses);
  }
  RuntimeClassConfig& settings = config.classes[std::string(handler)];
  ReadClass(reader, config, settings);
  if (!settings.handler) return OkStatus();
  if (handler.empty()) return InvalidArgument("the default handler \"\" cannot be an alias");
  if (*settings.handler == handler) {
    return InvalidArgument("{} is an alias of itself", handler);
  }
  return OkStatus();
}

// Refuses an alias of an alias, which would have two treatments.
void CheckAliases(MapReader& classes, RuntimesConfig& config) {
  for (const auto& [handler, settings] : config.classes) {
    if (!settings.handler) continue;
    const auto target = config.classes.find(*settings.handler);
    if (target == config.classes.end() || !target->second.handler) continue;
    const ConfigNode* const entry = classes.Node(handler);
    if (entry == nullptr) continue;
    classes.Fail(*entry, handler,
                 fmt::format("is an alias of {}, which is an alias itself", *settings.handler));
  }
}

ConfigNode ClassNode(const RuntimeClassConfig& settings) {
  ConfigNode node = MapNode(
      {{"Runtime", 1, ScalarNode(settings.runtime)},
       {"Pinning", 1, ScalarNode(ToString(settings.pinning))},
       {"Hooks", 1, ScalarNode(settings.hooks ? "true" : "false")},
       {"Overhead", 1,
        MapNode({{"cpu", 1, ScalarNode(FormatMilliCpu(settings.overhead.cpu))},
                 {"memory", 1, ScalarNode(fmt::format("{}", settings.overhead.memory.value))}})}});
  if (settings.handler) {
    node.entries.push_back({"Handler", 1, ScalarNode(*settings.handler)});
  }
  return node;
}

}  // namespace

std::string_view ToString(Pinning pinning) {
  for (const NamedPinning& known : kPinnings) {
    if (known.pinning == pinning) return known.name;
  }
  return "";
}

const RuntimeClassConfig& RuntimesConfig::ClassOf(std::string_view handler) const {
  static const RuntimeClassConfig kOfNoEntry;
  const auto it = classes.find(handler);
  return it == classes.end() ? kOfNoEntry : it->second;
}

void ReadRuntimes(MapReader& runtimes, RuntimesConfig& config) {
  runtimes.EachEntry([&config](std::string_view name, MapReader& runtime) {
    return ReadRuntime(name, runtime, config);
  });
}

void ReadRuntimeClasses(MapReader& classes, RuntimesConfig& config) {
  classes.EachEntry([&config](std::string_view handler, MapReader& reader) {
    return ReadNamedClass(handler, reader, config);
  });
  CheckAliases(classes, config);
}

ConfigNode RuntimesNode(const RuntimesConfig& config) {
  ConfigNode node = MapNode({});
  for (const auto& [name, runtime] : config.runtimes)
    node.entries.push_back({name, 1, MapNode({{"Socket", 1, ScalarNode(runtime.socket)}})});
  return node;
}

ConfigNode RuntimeClassesNode(const RuntimesConfig& config) {
  ConfigNode node = MapNode({});
  for (const auto& [handler, settings] : config.classes)
    node.entries.push_back({handler, 1, ClassNode(settings)});
  return node;
}

}  // namespace resmgr
