// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "pkg/config/config_section.h"

namespace resmgr {

// Configures the comparison of containers' real resources with the decided ones (pkg/audit).
struct AuditConfig {
  // Time from one audit to the next; 0: only on request.
  std::chrono::milliseconds interval = std::chrono::minutes(1);
  // Whether a periodic audit sends the decided values again to a container with other values.
  bool repair = false;

  friend bool operator==(const AuditConfig&, const AuditConfig&) = default;
};

// The module `audit`.
void DescribeAudit(ConfigSection& root, AuditConfig& config);

// Configures how the use of resources by containers is sampled (pkg/usage).
struct UsageConfig {
  std::chrono::milliseconds interval = std::chrono::seconds(10);
  bool per_container_metrics = false;
  // The period at which containers are moved by their use; 0: only on request.
  std::chrono::milliseconds rebalance_every{0};
  int64_t rebalance_moves = 5;  // at most, each time

  friend bool operator==(const UsageConfig&, const UsageConfig&) = default;
};

// The module `usage`.
void DescribeUsage(ConfigSection& root, UsageConfig& config);

// Configures the files that tell containers their CPUs (pkg/cpufile).
struct CpuFilesConfig {
  // The containers that get a file when they are created: none; those with an annotation that says
  // yes; all except those with an annotation that says no.
  enum class Containers { kNone, kAnnotated, kAll };

  Containers containers = Containers::kNone;
  // The file's directory in the container.
  std::string mount_path = "/run/cri-resmgr";

  friend bool operator==(const CpuFilesConfig&, const CpuFilesConfig&) = default;
};

// The module `cpuFiles`.
void DescribeCpuFiles(ConfigSection& root, CpuFilesConfig& config);

// The policy that schedulers get for pods that fit no single NUMA node.
enum class NrtAlignment {
  kPrefer,  // such a pod counts as worse: best-effort
  kRefuse,  // this node is not for it: single-numa-node
};

// Configures what the node's NodeResourceTopology tells schedulers (docs/scheduler.md).
struct NrtConfig {
  bool publish = true;
  NrtAlignment alignment = NrtAlignment::kPrefer;
  bool pools = false;  // pools of the policy are published, too, for people

  friend bool operator==(const NrtConfig&, const NrtConfig&) = default;
};

// The module `nrt`.
void DescribeNrt(ConfigSection& root, NrtConfig& config);

// The name of dra-driver-cpu, whose manifests work unchanged in the compatible mode.
inline constexpr std::string_view kCompatibleDriver = "dra.cpu";

// The parts of the machine that the driver offers as devices.
enum class DraDevices { kNuma, kL3 };

// Configures the driver for Dynamic Resource Allocation of CPUs (docs/scheduler.md).
struct DraConfig {
  bool enable = false;
  std::string driver = "cpu.cri-resmgr.intel.com";  // a DNS subdomain of 63 bytes at most
  bool compatible = false;
  DraDevices devices = DraDevices::kNuma;
  bool metadata = false;  // claims get device metadata

  // The driver's name in force.
  std::string DriverName() const { return compatible ? std::string(kCompatibleDriver) : driver; }

  friend bool operator==(const DraConfig&, const DraConfig&) = default;
};

// The module `dra`.
void DescribeDra(ConfigSection& root, DraConfig& config);

// Configures the use of Koordinator hook servers, which are asked about pods and containers.
struct HooksConfig {
  std::string directory{};                   // directory with a file for each server; "": none
  std::chrono::milliseconds timeout{2'000};  // for one answer; a server's file may differ
  // Servers are not asked about a pod with this label and value, so that a hook server in a pod is
  // not asked about its own start. "": they are asked about every pod.
  std::string skip_key = "runtimeproxy.koordinator.sh/skip-hookserver";
  std::string skip_value = "true";
  // Whether the configuration's text has the module `hooks`, even if it is {}. Comparisons ignore
  // this.
  bool stated = false;

  friend bool operator==(const HooksConfig& a, const HooksConfig& b) {
    return a.directory == b.directory && a.timeout == b.timeout && a.skip_key == b.skip_key &&
           a.skip_value == b.skip_value;
  }
};

// The module `hooks`.
void DescribeHooks(ConfigSection& root, HooksConfig& config);

}  // namespace resmgr
