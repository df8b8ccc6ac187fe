// SPDX-License-Identifier: Apache-2.0
#include "pkg/config/module_configs.h"

#include <algorithm>
#include <filesystem>

#include "pkg/base/parse.h"
#include "pkg/base/status.h"
#include "pkg/kube/names.h"

namespace resmgr {
namespace {

// Bytes: the limit of a Linux path, less room for the file's name.
constexpr size_t kLongestPath = 4000;

bool IsBelow(std::string_view path, std::string_view directory) {
  return path == directory ||
         (path.starts_with(directory) && path.substr(directory.size()).starts_with('/'));
}

// kInvalidArgument: not an absolute path without ".", ".." and empty names, one that a list of
// Docker's mounts cannot hold, "/", or in a kernel file system.
Status CheckMountPath(std::string_view path) {
  const std::string shown = Printable(path, 64);
  if (!path.starts_with('/') || path.size() > kLongestPath ||
      std::filesystem::path(path).lexically_normal().native() != path || path.ends_with('/')) {
    return InvalidArgument(
        "\"{}\" is not an absolute path of a directory, in its shortest form and below /", shown);
  }
  const bool strange =
      std::ranges::any_of(path, [](char c) { return c == ':' || c == ',' || c < ' ' || c == 127; });
  if (strange) return InvalidArgument("\"{}\" has a character that mounts cannot have", shown);
  for (const std::string_view reserved : {"/dev", "/proc", "/sys"}) {
    if (IsBelow(path, reserved))
      return InvalidArgument("\"{}\" is in {}, where the kernel's own files are", shown, reserved);
  }
  return OkStatus();
}

constexpr size_t kLongestDriver = 63;  // bytes, by the API of ResourceSlices

Status CheckDriver(std::string_view name) {
  if (name.size() <= kLongestDriver && IsSubdomain(name)) return OkStatus();
  return InvalidArgument("\"{}\" is not a DNS subdomain of {} bytes at most", Printable(name, 64),
                         kLongestDriver);
}

constexpr std::string_view kNoDirectory = "disabled";
// The kubelet gives up most calls after two minutes.
constexpr auto kLongestWait = std::chrono::minutes(2);

Status ReadDirectory(std::string_view text, std::string& directory) {
  const bool none = text.empty() || text == kNoDirectory;
  directory = none ? "" : text;
  if (none || text.front() == '/') return OkStatus();
  return InvalidArgument("\"{}\" is neither an absolute path nor \"{}\"", Printable(text),
                         kNoDirectory);
}

Status CheckSkipKey(std::string_view text) {
  // A key that is invalid for labels would match no pod.
  if (text.empty() || IsLabelKey(text)) return OkStatus();
  return InvalidArgument("\"{}\" is not a valid label key", Printable(text, 64));
}

void DescribeServers(ConfigSection& hooks, HooksConfig& config) {
  config.stated = true;
  hooks
      .Parse(
          "Directory", config.directory.empty() ? std::string(kNoDirectory) : config.directory,
          [&](std::string_view text) { return ReadDirectory(text, config.directory); },
          "the directory with a file `*.json` for each Koordinator hook server that is called; "
          "`disabled`: none")
      .Flag("hook-dir", "DIR");
  hooks.Duration("Timeout", std::chrono::milliseconds(1), kLongestWait, config.timeout,
                 "the time limit for an answer of a server whose file has no `timeout`");
  hooks
      .Text("SkipKey", config.skip_key,
            "servers are not called for pods that have this label or annotation with the value of "
            "`SkipValue` (`-hook-skip-value`); `\"\"` exempts no pods",
            CheckSkipKey)
      .Flag("hook-skip-key", "KEY");
  hooks
      .Text("SkipValue", config.skip_value,
            "the value that the label or annotation `SkipKey` (`-hook-skip-key`) must have")
      .Flag("hook-skip-value", "VALUE");
}

}  // namespace

void DescribeAudit(ConfigSection& root, AuditConfig& config) {
  root.Map("audit", [&config](ConfigSection& audit) {
    // The minimum is a second, since an audit asks the runtime for the status of each container.
    audit.Duration("Interval", std::chrono::seconds(1), std::chrono::hours(24), config.interval,
                   "how often the values in force for running containers are compared with the "
                   "decided values; in mode `docker` also after an update by another client; "
                   "`disabled`: only on `cri-resmgr-ctl audit`",
                   "disabled");
    audit.Bool("Repair", config.repair,
               "`true`: the decided values are then sent again to containers that differ");
  });
}

void DescribeUsage(ConfigSection& root, UsageConfig& config) {
  root.Map("usage", [&config](ConfigSection& usage) {
    usage.Duration("Interval", std::chrono::seconds(1), std::chrono::minutes(5), config.interval,
                   "how often the daemon samples what containers use, from `1s` to `5m`; only "
                   "while metrics are served or a client looks");
    usage.Bool("PerContainerMetrics", config.per_container_metrics,
               "`true`: the metrics also have series of single containers, of the first 1,000 of "
               "them");
    usage.Duration("RebalanceInterval", std::chrono::minutes(1), std::chrono::hours(24),
                   config.rebalance_every,
                   "how often containers are moved between shared pools by what they use, as by "
                   "`cri-resmgr-ctl rebalance -by use -apply`; samples are then always taken",
                   "disabled");
    usage.Int("RebalanceMoves", 1, 100, config.rebalance_moves,
              "how many containers each of these rebalances moves at most");
  });
}

void DescribeCpuFiles(ConfigSection& root, CpuFilesConfig& config) {
  using enum CpuFilesConfig::Containers;
  root.Map("cpuFiles", [&config](ConfigSection& files) {
    files.Choice("Containers", {{"none", kNone}, {"annotated", kAnnotated}, {"all", kAll}},
                 config.containers,
                 "the containers that get a file with their CPUs when they are created");
    files.Text("MountPath", config.mount_path, "the directory of the file in the container",
               CheckMountPath);
  });
}

void DescribeNrt(ConfigSection& root, NrtConfig& config) {
  root.Map("nrt", [&config](ConfigSection& nrt) {
    nrt.Bool("Publish", config.publish,
             "`true`: the agent keeps the node's NodeResourceTopology equal to what the active "
             "policy would grant; `false`: it removes its own");
    nrt.Choice(
        "Alignment", {{"prefer", NrtAlignment::kPrefer}, {"refuse", NrtAlignment::kRefuse}},
        config.alignment,
        "`prefer`: schedulers score nodes by their NUMA nodes; `refuse`: they also leave out a "
        "node where a pod fits no single NUMA node, if the policy refuses containers that do not");
    nrt.Bool("Pools", config.pools,
             "`true`: the policy's pools or balloons are zones of the object, too, for people; "
             "schedulers do not read them");
  });
}

void DescribeDra(ConfigSection& root, DraConfig& config) {
  root.Map("dra", [&config](ConfigSection& dra) {
    dra.Bool("Enable", config.enable,
             "`true`: the daemon is a driver for Dynamic Resource Allocation, and the agent "
             "publishes the node's CPUs as devices that pods can claim");
    dra.Text("Driver", config.driver, "the driver's name, which DeviceClasses select", CheckDriver);
    dra.Bool("Compatible", config.compatible,
             "`true`: name, devices, attributes and environment are those of dra-driver-cpu "
             "(`dra.cpu`), in place of `Driver`");
    dra.Choice("Devices", {{"numa", DraDevices::kNuma}, {"l3", DraDevices::kL3}}, config.devices,
               "`numa`: each NUMA node is a device; `l3`: each L3 cache, in NUMA nodes that have "
               "several");
    dra.Bool("Metadata", config.metadata,
             "`true`: containers of a claim find a file with its CPUs, in the form of Kubernetes' "
             "device metadata (`metadata.resource.k8s.io/v1beta1`)");
  });
}

void DescribeHooks(ConfigSection& root, HooksConfig& config) {
  root.Map(
      "hooks", [&config](ConfigSection& hooks) { DescribeServers(hooks, config); }, "Hook servers");
}

}  // namespace resmgr
