// SPDX-License-Identifier: Apache-2.0
#include "pkg/config/runtimes_config.h"

#include <algorithm>
#include <vector>

#include "pkg/base/characters.h"
#include "pkg/base/parse.h"
#include "pkg/base/suggest.h"
#include "pkg/config/pod_annotation.h"
#include "pkg/kube/quantity.h"
#include "pkg/sys/unix_socket.h"

namespace resmgr {

namespace {

// The limit of a Kubernetes object's name; a handler is a DNS label.
constexpr size_t kLongestName = 63;

constexpr std::string_view kClasses = "runtimeClasses";

// Names occur in log lines, errors and labels of metrics.
bool IsName(std::string_view name) {
  const auto is_of_name = [](char c) {
    return IsLetterOrDigit(c) || c == '-' || c == '_' || c == '.';
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

Status CheckNewRuntime(const RuntimesConfig& config, std::string_view name) {
  RESMGR_RETURN_IF_ERROR(CheckName(name, "runtime's name"));
  if (name == kDefaultRuntime) {
    return InvalidArgument("{} is the runtime of -runtime-socket", kDefaultRuntime);
  }
  if (config.runtimes.size() >= RuntimesConfig::kMostRuntimes) {
    return InvalidArgument("has more than {} runtimes", RuntimesConfig::kMostRuntimes);
  }
  return OkStatus();
}

Status DescribeRuntime(std::string_view name, ConfigSection& runtime, std::string& socket,
                       const RuntimesConfig& config) {
  runtime
      .Parse(
          "Socket", socket,
          [&](std::string_view text) {
            socket = StripUnixPrefix(text);
            return CheckSocket(config, name, socket);
          },
          "the CRI socket of an additional runtime; the runtime of `-runtime-socket` is called "
          "`default`")
      .Default("required");
  const ConfigNode* given = runtime.Node("Socket");
  if (given == nullptr || given->kind == ConfigNode::Kind::kNull) {
    return InvalidArgument("{} needs a Socket", name);
  }
  return OkStatus();
}

void DescribeOverhead(ConfigSection& overhead, OverheadConfig& config) {
  overhead.Parse(
      "cpu", FormatMilliCpu(config.cpu), config.cpu, ParseMilliCpu,
      "the CPU time that such a pod uses in addition to its containers, if the kubelet states no "
      "overhead; only shown");
  overhead.Parse("memory", fmt::format("{}", config.memory.value), config.memory,
                 ParseConfiguredBytes, "the same of memory");
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

void DescribeClass(ConfigSection& section, const RuntimesConfig& config,
                   RuntimeClassConfig& settings) {
  section.Text("Runtime", settings.runtime, "the runtime that runs these pods",
               [&config](std::string_view name) { return CheckRuntime(config, name); });
  section.Choice("Pinning", {Pinning::kContainer, Pinning::kSandbox, Pinning::kNone},
                 settings.pinning,
                 "what is bound to CPUs: each `container`, or no container (`sandbox`, `none`)");
  section.Bool("Hooks", settings.hooks, "whether hook servers are called for these pods");
  section.Map("Overhead", [&settings](ConfigSection& overhead) {
    DescribeOverhead(overhead, settings.overhead);
  });
  section
      .Parse(
          "Handler", settings.handler,
          [&](std::string_view text) {
            settings.handler = text;
            return text.empty() ? OkStatus() : CheckName(text, "handler");
          },
          "makes this handler an alias: the runtime receives the name of its own handler instead")
      .Default("none");
}

Status CheckNewClass(const RuntimesConfig& config, std::string_view handler) {
  if (!handler.empty()) RESMGR_RETURN_IF_ERROR(CheckName(handler, "handler"));
  if (config.classes.size() >= RuntimesConfig::kMostClasses) {
    return InvalidArgument("has more than {} handlers", RuntimesConfig::kMostClasses);
  }
  return OkStatus();
}

Status CheckAlias(std::string_view handler, const RuntimeClassConfig& settings) {
  if (!settings.handler) return OkStatus();
  if (handler.empty()) return InvalidArgument("the default handler \"\" cannot be an alias");
  if (*settings.handler == handler) return InvalidArgument("{} is an alias of itself", handler);
  return OkStatus();
}

// Refuses an alias of an alias, which would have two treatments.
void CheckAliases(ConfigSection& root, const RuntimesConfig& config) {
  const ConfigNode* const classes = root.Node(kClasses);
  if (classes == nullptr) return;
  for (const auto& [handler, settings] : config.classes) {
    if (!settings.handler) continue;
    const auto target = config.classes.find(*settings.handler);
    if (target == config.classes.end() || !target->second.handler) continue;
    const ConfigNode* const entry = FindMember(*classes, handler);
    if (entry == nullptr) continue;
    root.Fail(*entry, fmt::format("{}.{}", kClasses, handler),
              fmt::format("is an alias of {}, which is an alias itself", *settings.handler));
  }
}

}  // namespace

std::string_view ToString(Pinning pinning) {
  switch (pinning) {
    case Pinning::kContainer:
      return "container";
    case Pinning::kSandbox:
      return "sandbox";
    case Pinning::kNone:
      return "none";
  }
  return "";
}

const RuntimeClassConfig& RuntimesConfig::ClassOf(std::string_view handler) const {
  static const RuntimeClassConfig kOfNoEntry;
  const auto it = classes.find(handler);
  return it == classes.end() ? kOfNoEntry : it->second;
}

void DescribeRuntimes(ConfigSection& root, RuntimesConfig& config) {
  root.Each<RuntimeConfig>(
      "runtimes", "NAME", config.runtimes,
      [&config](std::string_view name) { return CheckNewRuntime(config, name); },
      [&config](std::string_view name, ConfigSection& section, RuntimeConfig& runtime) {
        return DescribeRuntime(name, section, runtime.socket, config);
      },
      "additional runtimes, by name");
  root.Each<RuntimeClassConfig>(
      kClasses, "HANDLER", config.classes,
      [&config](std::string_view handler) { return CheckNewClass(config, handler); },
      [&config](std::string_view handler, ConfigSection& section, RuntimeClassConfig& settings) {
        DescribeClass(section, config, settings);
        return CheckAlias(handler, settings);
      },
      "the rules for pods of this RuntimeClass handler; `\"\"` is the handler of pods without a "
      "RuntimeClass");
  CheckAliases(root, config);
}

}  // namespace resmgr
