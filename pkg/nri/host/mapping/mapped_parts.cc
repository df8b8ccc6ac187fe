// SPDX-License-Identifier: Apache-2.0
#include "pkg/nri/host/mapping/mapped_parts.h"

#include <algorithm>
#include <array>
#include <cstdint>

#include <nlohmann/json.hpp>

#include "pkg/base/json.h"
#include "pkg/base/parse.h"

namespace resmgr::nri {
namespace {

constexpr size_t kShownOption = 64;

// Linux' limits, as OCI names them after "RLIMIT_".
constexpr std::array<std::string_view, 16> kLimits{
    "AS",   "CORE",   "CPU",   "DATA", "FSIZE",  "LOCKS",  "MEMLOCK",    "MSGQUEUE",
    "NICE", "NOFILE", "NPROC", "RSS",  "RTPRIO", "RTTIME", "SIGPENDING", "STACK"};

// Takes one of OCI's mount options. False: requests cannot express it.
bool TakeOption(std::string_view option, Mount& mount) {
  using enum Mount::Propagation;
  if (option == "bind" || option == "rbind" || option == "rw" || option == "defaults") return true;
  if (option == "ro" || option == "rro") {
    mount.read_only = true;
    mount.recursive_read_only = option == "rro";
  } else if (option == "private" || option == "rprivate") {
    mount.propagation = kPrivate;
  } else if (option == "slave" || option == "rslave") {
    mount.propagation = kHostToContainer;
  } else if (option == "shared" || option == "rshared") {
    mount.propagation = kBidirectional;
  } else if (option == "relabel") {
    mount.selinux_relabel = true;
  } else {
    return false;
  }
  return true;
}

bool IsBindMount(const api::Mount& mount) {
  if (mount.type() == "bind") return true;
  if (!mount.type().empty() && mount.type() != "none") return false;
  for (const std::string& option : mount.options())
    if (option == "bind" || option == "rbind") return true;
  return false;
}

// Whether the device's numbers fit Linux' 12 and 20 bits.
bool HasNumbers(const api::LinuxDevice& device) {
  constexpr int64_t kMostMajor = (1 << 12) - 1;
  constexpr int64_t kMostMinor = (1 << 20) - 1;
  return device.major() >= 0 && device.major() <= kMostMajor && device.minor() >= 0 &&
         device.minor() <= kMostMinor;
}

std::string PermissionsOf(const api::LinuxDevice& device, bool block) {
  constexpr uint32_t kRead = 0444;
  constexpr uint32_t kWrite = 0222;
  const uint32_t mode = device.file_mode().value();
  const bool any = (mode & (kRead | kWrite)) != 0;
  std::string permissions;
  if (!any || (mode & kRead) != 0) permissions += 'r';
  if (!any || (mode & kWrite) != 0) permissions += 'w';
  if (block) permissions += 'm';
  return permissions;
}

nlohmann::json SyscallJson(const api::LinuxSyscall& syscall) {
  nlohmann::json json{{"names", syscall.names()}, {"action", syscall.action()}};
  if (syscall.has_errno_ret()) json["errnoRet"] = syscall.errno_ret().value();
  for (const api::LinuxSeccompArg& arg : syscall.args()) {
    json["args"].push_back({{"index", arg.index()},
                            {"value", arg.value()},
                            {"valueTwo", arg.value_two()},
                            {"op", arg.op()}});
  }
  return json;
}

}  // namespace

StatusOr<Mount> MapMount(const api::Mount& mount, const RuntimeTraits& traits) {
  if (!IsBindMount(mount)) {
    return InvalidArgument("only bind mounts are added by {}, not \"{}\"", traits.api_name,
                           Printable(mount.type(), kShownOption));
  }
  Mount mapped{.container_path = mount.destination(), .host_path = mount.source()};
  if (!mapped.host_path.starts_with('/')) {
    return InvalidArgument("its source is not an absolute path of the node");
  }
  for (const std::string& option : mount.options()) {
    if (TakeOption(option, mapped)) continue;
    return InvalidArgument("{} does not have the mount option \"{}\"", traits.api_name,
                           Printable(option, kShownOption));
  }
  mapped.non_recursive = std::ranges::find(mount.options(), "rbind") == mount.options().end();
  if (mapped.recursive_read_only && !traits.recursive_read_only) {
    return InvalidArgument("the runtime has no recursively read-only mounts");
  }
  if (mapped.recursive_read_only && mapped.propagation != Mount::Propagation::kPrivate) {
    return InvalidArgument("{} has recursively read-only mounts with private propagation only",
                           traits.api_name);
  }
  return mapped;
}

bool CanBeNonRecursive(const Mount& mount, const RuntimeTraits& traits) {
  // The Docker API has SELinux labels only in its other list of mounts, which are always recursive.
  return traits.non_recursive_mounts && !mount.selinux_relabel && !mount.recursive_read_only;
}

void MakeRecursive(const RuntimeTraits& traits, Mount& mount) {
  mount.non_recursive = false;
  if (mount.read_only && traits.announced_recursive_read_only &&
      mount.propagation == Mount::Propagation::kPrivate) {
    mount.recursive_read_only = true;
  }
}

StatusOr<WantedDevice> MapDevice(const api::LinuxDevice& device, const RuntimeTraits& traits) {
  const bool block = device.type() == "b";
  if (!block && device.type() != "c" && device.type() != "u") {
    return InvalidArgument("{} has no devices of type \"{}\"", traits.api_name,
                           Printable(device.type(), kShownOption));
  }
  if (!device.path().starts_with('/')) return InvalidArgument("the path is not absolute");
  if (!HasNumbers(device)) return InvalidArgument("there is no such device number");
  WantedDevice wanted{.container_path = device.path(),
                      .permissions = PermissionsOf(device, block),
                      .block = block,
                      .major = device.major(),
                      .minor = device.minor()};
  // Plugins that copy a device without a mode send 0.
  if (device.file_mode().value() != 0) wanted.mode = device.file_mode().value();
  if (device.has_uid()) wanted.uid = device.uid().value();
  if (device.has_gid()) wanted.gid = device.gid().value();
  return wanted;
}

StatusOr<ResourceLimit> MapLimit(const api::POSIXRlimit& limit) {
  constexpr std::string_view kPrefix = "RLIMIT_";
  const std::string_view type = limit.type();
  if (!type.starts_with(kPrefix) ||
      std::ranges::find(kLimits, type.substr(kPrefix.size())) == kLimits.end()) {
    return InvalidArgument("Linux has no such limit");
  }
  if (limit.soft() > limit.hard()) {
    return InvalidArgument("the soft limit {} is above the hard one, {}", limit.soft(),
                           limit.hard());
  }
  return ResourceLimit{.type = limit.type(), .hard = limit.hard(), .soft = limit.soft()};
}

std::string SeccompJson(const api::LinuxSeccomp& policy) {
  nlohmann::json json{{"defaultAction", policy.default_action()}};
  if (policy.has_default_errno()) json["defaultErrnoRet"] = policy.default_errno().value();
  if (!policy.architectures().empty()) json["architectures"] = policy.architectures();
  if (!policy.flags().empty()) json["flags"] = policy.flags();
  if (!policy.listener_path().empty()) json["listenerPath"] = policy.listener_path();
  if (!policy.listener_metadata().empty()) json["listenerMetadata"] = policy.listener_metadata();
  for (const api::LinuxSyscall& syscall : policy.syscalls())
    json["syscalls"].push_back(SyscallJson(syscall));
  return JsonText(json);
}

}  // namespace resmgr::nri
