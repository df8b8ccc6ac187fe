// SPDX-License-Identifier: Apache-2.0
#include "pkg/docker/host_config_fields.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "pkg/docker/json_text.h"

namespace resmgr::docker {
namespace {

// The fields of API version 1.41.
constexpr auto kHostConfigFields = std::to_array<std::string_view>({"AutoRemove",
                                                                    "Binds",
                                                                    "BlkioDeviceReadBps",
                                                                    "BlkioDeviceReadIOps",
                                                                    "BlkioDeviceWriteBps",
                                                                    "BlkioDeviceWriteIOps",
                                                                    "BlkioWeight",
                                                                    "BlkioWeightDevice",
                                                                    "CapAdd",
                                                                    "CapDrop",
                                                                    "Cgroup",
                                                                    "CgroupParent",
                                                                    "CgroupnsMode",
                                                                    "ConsoleSize",
                                                                    "ContainerIDFile",
                                                                    "CpuCount",
                                                                    "CpuPercent",
                                                                    "CpuPeriod",
                                                                    "CpuQuota",
                                                                    "CpuRealtimePeriod",
                                                                    "CpuRealtimeRuntime",
                                                                    "CpuShares",
                                                                    "CpusetCpus",
                                                                    "CpusetMems",
                                                                    "DeviceCgroupRules",
                                                                    "DeviceRequests",
                                                                    "Devices",
                                                                    "Dns",
                                                                    "DnsOptions",
                                                                    "DnsSearch",
                                                                    "ExtraHosts",
                                                                    "GroupAdd",
                                                                    "IOMaximumBandwidth",
                                                                    "IOMaximumIOps",
                                                                    "Init",
                                                                    "IpcMode",
                                                                    "Isolation",
                                                                    "KernelMemory",
                                                                    "KernelMemoryTCP",
                                                                    "Links",
                                                                    "LogConfig",
                                                                    "MaskedPaths",
                                                                    "Memory",
                                                                    "MemoryReservation",
                                                                    "MemorySwap",
                                                                    "MemorySwappiness",
                                                                    "Mounts",
                                                                    "NanoCpus",
                                                                    "NetworkMode",
                                                                    "OomKillDisable",
                                                                    "OomScoreAdj",
                                                                    "PidMode",
                                                                    "PidsLimit",
                                                                    "PortBindings",
                                                                    "Privileged",
                                                                    "PublishAllPorts",
                                                                    "ReadonlyPaths",
                                                                    "ReadonlyRootfs",
                                                                    "RestartPolicy",
                                                                    "Runtime",
                                                                    "SecurityOpt",
                                                                    "ShmSize",
                                                                    "StorageOpt",
                                                                    "Sysctls",
                                                                    "Tmpfs",
                                                                    "UTSMode",
                                                                    "Ulimits",
                                                                    "UsernsMode",
                                                                    "VolumeDriver",
                                                                    "VolumesFrom"});

}  // namespace

bool IsHostConfigField(std::string_view quoted) {
  return std::ranges::any_of(kHostConfigFields,
                             [quoted](std::string_view field) { return IsField(quoted, field); });
}

std::vector<std::string> MembersBesideHostConfig(std::string_view object) {
  std::vector<std::string> members;
  ForEachMember(object, [&members](std::string_view name, std::string_view value) {
    if (IsHostConfigField(name)) members.push_back(fmt::format("{}:{}", name, value));
  });
  return members;
}

}  // namespace resmgr::docker
