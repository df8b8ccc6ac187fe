// SPDX-License-Identifier: Apache-2.0
#include "pkg/docker/host_config.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "pkg/base/characters.h"
#include "pkg/base/parse.h"
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

constexpr std::string_view kLimitPrefix = "RLIMIT_";
constexpr std::string_view kSeccomp = "seccomp";

// Formats "HOST:CONTAINER:OPTIONS". kInvalidArgument: neither form can express the mount.
StatusOr<std::string> BindOf(const Mount& mount) {
  if (!mount.image.empty()) return InvalidArgument("mount {}: an image", mount.container_path);
  if (mount.recursive_read_only) {
    return InvalidArgument("mount {}: recursively read-only", mount.container_path);
  }
  for (const std::string& path : {mount.host_path, mount.container_path}) {
    if (!path.starts_with('/') || path.find(':') != std::string::npos) {
      return InvalidArgument("mount {}: the path \"{}\" cannot be written in Binds",
                             Printable(mount.container_path), Printable(path));
    }
  }
  std::string bind =
      fmt::format("{}:{}:{}", mount.host_path, mount.container_path, mount.read_only ? "ro" : "rw");
  using enum Mount::Propagation;
  if (mount.propagation == kHostToContainer) bind += ",rslave";
  if (mount.propagation == kBidirectional) bind += ",rshared";
  if (mount.selinux_relabel) bind += ",Z";
  return bind;
}

// A member of Mounts, the form that allows non-recursive mounts. dockerd refuses it if the path
// does not exist.
std::string MountObject(const Mount& mount) {
  using enum Mount::Propagation;
  std::string_view propagation = "rprivate";
  if (mount.propagation == kHostToContainer) propagation = "rslave";
  if (mount.propagation == kBidirectional) propagation = "rshared";
  return fmt::format(
      "{{\"Type\":\"bind\",\"Source\":{},\"Target\":{},\"ReadOnly\":{},\"BindOptions\":"
      "{{\"Propagation\":\"{}\",\"NonRecursive\":true}}}}",
      EncodeJsonText(mount.host_path), EncodeJsonText(mount.container_path), mount.read_only,
      propagation);
}

// Returns the elements of the list that no edit removes or replaces; `key` returns an element's
// key.
template <typename Edits, typename Key>
std::vector<std::string> KeptOf(std::string_view list, const Edits& edits, Key key) {
  return ElementsWithout(
      list, [&](std::string_view element) { return edits.Find(key(element)) != nullptr; });
}

std::string TextIn(std::string_view object, std::string_view field) {
  return IsJsonObject(object) ? TextOf(LastMember(object, field)) : "";
}

std::string PathOfBind(std::string_view element) {
  const std::string text = TextOf(element);
  const size_t begin = text.find(':') + 1;  // a path without colon is an anonymous volume
  return text.substr(begin, text.find(':', begin) - begin);
}

Status AddMounts(std::string_view object, const KeyedEdits<Mount>& edits, NewMembers& members) {
  if (edits.empty()) return OkStatus();
  std::vector<std::string> binds =
      KeptOf(HostConfigMember(object, "Binds"), edits, [](auto e) { return PathOfBind(e); });
  std::vector<std::string> objects;
  for (const auto& edit : edits) {
    if (!edit.value) continue;
    // BindOf also refuses what neither form can express.
    RESMGR_ASSIGN_OR_RETURN(const std::string bind, BindOf(*edit.value));
    if (edit.value->non_recursive) {
      objects.push_back(MountObject(*edit.value));
    } else {
      binds.push_back(EncodeJsonText(bind));
    }
  }
  members.emplace_back("Binds", "[" + JoinJson(binds) + "]");
  const std::string_view mounts = HostConfigMember(object, "Mounts");
  if (!IsJsonList(mounts) && objects.empty()) return OkStatus();
  const auto target = [](std::string_view element) { return TextIn(element, "Target"); };
  std::vector<std::string> kept = KeptOf(mounts, edits, target);
  std::ranges::move(objects, std::back_inserter(kept));
  members.emplace_back("Mounts", "[" + JoinJson(kept) + "]");
  return OkStatus();
}

void AddDevices(std::string_view object, const KeyedEdits<Device>& edits, NewMembers& members) {
  if (edits.empty()) return;
  const auto path = [](std::string_view element) { return TextIn(element, "PathInContainer"); };
  std::vector<std::string> devices = KeptOf(HostConfigMember(object, "Devices"), edits, path);
  for (const auto& edit : edits) {
    if (!edit.value) continue;
    devices.push_back(fmt::format(
        "{{\"PathOnHost\":{},\"PathInContainer\":{},\"CgroupPermissions\":{}}}",
        EncodeJsonText(edit.value->host_path), EncodeJsonText(edit.value->container_path),
        EncodeJsonText(edit.value->permissions)));
  }
  members.emplace_back("Devices", "[" + JoinJson(devices) + "]");
}

// The limit's type in the OCI's form. Docker leaves out "RLIMIT_" and accepts any case.
std::string TypeOfLimit(std::string_view element) {
  std::string type = TextIn(element, "Name");
  std::ranges::transform(type, type.begin(), UpperCase);
  return std::string(kLimitPrefix) + type;
}

// kInvalidArgument: a type that the OCI does not know.
Status AddLimits(std::string_view object, const KeyedEdits<ResourceLimit>& edits,
                 NewMembers& members) {
  if (edits.empty()) return OkStatus();
  std::vector<std::string> limits = KeptOf(HostConfigMember(object, "Ulimits"), edits, TypeOfLimit);
  for (const auto& edit : edits) {
    if (!edit.value) continue;
    std::string name = edit.value->type;
    if (!name.starts_with(kLimitPrefix)) {
      return InvalidArgument("the limit \"{}\" is not one of the OCI's types", Printable(name));
    }
    name.erase(0, kLimitPrefix.size());
    std::ranges::transform(name, name.begin(), LowerCase);
    // dockerd takes signed 64-bit numbers: the OCI's largest value becomes -1, unlimited.
    limits.push_back(fmt::format("{{\"Name\":{},\"Soft\":{},\"Hard\":{}}}", EncodeJsonText(name),
                                 static_cast<int64_t>(edit.value->soft),
                                 static_cast<int64_t>(edit.value->hard)));
  }
  members.emplace_back("Ulimits", "[" + JoinJson(limits) + "]");
  return OkStatus();
}

// kInvalidArgument: the profile is a file, which dockerd does not read.
Status AddSeccomp(std::string_view object, const std::string& profile, NewMembers& members) {
  if (!IsJsonObject(profile)) {
    return InvalidArgument("the seccomp profile {} is in a file", Printable(profile));
  }
  std::vector<std::string> options = ElementsWithout(
      HostConfigMember(object, "SecurityOpt"),
      [](std::string_view element) { return SeccompOf(TextOf(element)).has_value(); });
  options.push_back(EncodeJsonText(fmt::format("{}={}", kSeccomp, profile)));
  members.emplace_back("SecurityOpt", "[" + JoinJson(options) + "]");
  return OkStatus();
}

constexpr std::string_view kIoMax = "io.max";
constexpr std::string_view kIoWeight = "io.weight";

// The keys of io.max, each with the field of the same meaning.
constexpr std::array<std::pair<std::string_view, std::string_view>, 4> kThrottles = {{
    {"rbps", "BlkioDeviceReadBps"},
    {"wbps", "BlkioDeviceWriteBps"},
    {"riops", "BlkioDeviceReadIOps"},
    {"wiops", "BlkioDeviceWriteIOps"},
}};

Status Malformed(std::string_view file, std::string_view line) {
  return InvalidArgument("unified {}: \"{}\" is no limit of a device", file, Printable(line, 128));
}

bool IsDeviceNumber(std::string_view word) {
  const size_t colon = word.find(':');
  return colon != std::string_view::npos && ParseUint(word.substr(0, colon)) &&
         ParseUint(word.substr(colon + 1));
}

std::string OfDevice(std::string_view device, std::string_view name, uint64_t value) {
  return fmt::format(R"({{"Path":"/dev/block/{}","{}":{}}})", device, name, value);
}

// The weight that runc converts to this io.weight, by 1 + (weight - 10) * 9999 / 990, rounded down.
std::optional<uint64_t> WeightOf(std::string_view text) {
  constexpr uint64_t kMostUnified = 10'000;
  constexpr uint64_t kLeast = 10;
  constexpr uint64_t kSteps = 990;
  const std::optional<uint64_t> unified = ParseUint(text);
  if (!unified || *unified < 1 || *unified > kMostUnified) return std::nullopt;
  return kLeast + ((*unified - 1) * kSteps + kMostUnified - 2) / (kMostUnified - 1);
}

Status AddLimits(std::string_view value, NewMembers& members) {
  std::array<std::vector<std::string>, kThrottles.size()> lists;
  for (const std::string_view line : Split(value, '\n')) {
    const std::vector<std::string_view> words = Split(line, ' ');
    if (line.empty()) continue;
    if (!IsDeviceNumber(words[0])) return Malformed(kIoMax, line);
    for (size_t i = 1; i < words.size(); ++i) {
      bool known = false;
      for (size_t one = 0; one < kThrottles.size(); ++one) {
        const std::string key = fmt::format("{}=", kThrottles[one].first);
        if (!words[i].starts_with(key)) continue;
        const std::string_view text = words[i].substr(key.size());
        const std::optional<uint64_t> limit = ParseUint(text);
        known = text == "max" || limit;
        if (limit) lists[one].push_back(OfDevice(words[0], "Rate", *limit));
      }
      if (!known) return Malformed(kIoMax, line);
    }
  }
  for (size_t one = 0; one < kThrottles.size(); ++one)
    members.emplace_back(kThrottles[one].second, fmt::format("[{}]", JoinJson(lists[one])));
  return OkStatus();
}

Status AddWeights(std::string_view value, NewMembers& members) {
  std::vector<std::string> devices;
  for (const std::string_view line : Split(value, '\n')) {
    if (line.empty()) continue;
    const size_t space = line.find(' ');
    const std::string_view whose = line.substr(0, space);
    const std::optional<uint64_t> weight =
        space == std::string_view::npos ? std::nullopt : WeightOf(line.substr(space + 1));
    if (!weight || (whose != "default" && !IsDeviceNumber(whose)))
      return Malformed(kIoWeight, line);
    if (whose == "default") {
      members.emplace_back("BlkioWeight", fmt::format("{}", *weight));
    } else {
      devices.push_back(OfDevice(whose, "Weight", *weight));
    }
  }
  if (!devices.empty())
    members.emplace_back("BlkioWeightDevice", fmt::format("[{}]", JoinJson(devices)));
  return OkStatus();
}

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

std::string_view HostConfigMember(std::string_view object, std::string_view field) {
  std::string_view member;
  ForEachMember(object, [&member, field](std::string_view name, std::string_view value) {
    if (!IsField(name, "HostConfig")) return;
    const std::string_view last = IsJsonObject(value) ? LastMember(value, field) : "null";
    if (!last.empty()) member = last;
  });
  return member;
}

// The separator is "=", or a colon if there is no "=".
std::optional<std::string_view> SeccompOf(std::string_view option) {
  const size_t end = option.find(option.find('=') != std::string_view::npos ? '=' : ':');
  if (end == std::string_view::npos || option.substr(0, end) != kSeccomp) return std::nullopt;
  return option.substr(end + 1);
}

Status AddLists(std::string_view object, const WideAdjustment& wide, NewMembers& members) {
  RESMGR_RETURN_IF_ERROR(AddMounts(object, wide.mounts, members));
  AddDevices(object, wide.devices, members);
  RESMGR_RETURN_IF_ERROR(AddLimits(object, wide.resource_limits, members));
  if (!wide.seccomp_profile) return OkStatus();
  return AddSeccomp(object, *wide.seccomp_profile, members);
}

bool IsBlockioFile(std::string_view file) {
  return file == kIoMax || file == kIoWeight;
}

Status AddBlockio(std::string_view file, std::string_view value, NewMembers& members) {
  return file == kIoMax ? AddLimits(value, members) : AddWeights(value, members);
}

}  // namespace resmgr::docker
