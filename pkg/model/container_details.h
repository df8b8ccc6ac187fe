// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <vector>

#include "pkg/base/string_map.h"
#include "pkg/model/environment.h"

namespace resmgr {

// A bind mount of a path of the host, or a mount of an image.
struct Mount {
  // As CRI's MountPropagation, with its numbers.
  enum class Propagation { kPrivate = 0, kHostToContainer = 1, kBidirectional = 2 };

  std::string container_path;
  std::string host_path{};
  bool read_only = false;
  bool recursive_read_only = false;
  bool non_recursive = false;  // without the mounts below the path; the CRI cannot express this
  bool selinux_relabel = false;
  Propagation propagation = Propagation::kPrivate;
  std::string image{};  // the image's reference; empty: a path of the host is mounted

  friend bool operator==(const Mount&, const Mount&) = default;
};

struct Device {
  std::string container_path;
  std::string host_path{};
  std::string permissions{};  // of r, w and m

  friend bool operator==(const Device&, const Device&) = default;
};

// A POSIX resource limit, as the OCI runtime specification names it ("RLIMIT_NOFILE").
struct ResourceLimit {
  std::string type;
  uint64_t hard = 0;
  uint64_t soft = 0;

  friend bool operator==(const ResourceLimit&, const ResourceLimit&) = default;
};

// A program that the OCI runtime runs at a point of the container's life.
struct OciHook {
  enum class Point {
    kPrestart,
    kCreateRuntime,
    kCreateContainer,
    kStartContainer,
    kPoststart,
    kPoststop,
  };

  Point point = Point::kPrestart;
  std::string path;
  std::vector<std::string> args{};
  std::vector<std::string> env{};  // "NAME=value"
  std::optional<int64_t> timeout_seconds{};

  friend bool operator==(const OciHook&, const OciHook&) = default;
};

// As CRI's SecurityProfile for seccomp, with its numbers.
struct SeccompProfile {
  enum class Kind { kRuntimeDefault = 0, kUnconfined = 1, kLocalhost = 2 };

  Kind kind = Kind::kRuntimeDefault;
  std::string path{};  // for kLocalhost: a file of the host

  friend bool operator==(const SeccompProfile&, const SeccompProfile&) = default;
};

// The owner of the namespace that a container uses, with the numbers of CRI's NamespaceMode.
enum class NamespaceMode { kPod = 0, kContainer = 1, kNode = 2, kTarget = 3 };

// The user and the isolation with which a container runs.
struct ContainerSecurity {
  bool privileged = false;
  std::optional<SeccompProfile> seccomp{};
  std::optional<int64_t> user{};  // by number
  std::optional<int64_t> group{};
  std::vector<int64_t> supplemental_groups{};
  NamespaceMode network = NamespaceMode::kPod;
  NamespaceMode pid = NamespaceMode::kPod;
  NamespaceMode ipc = NamespaceMode::kPod;

  friend bool operator==(const ContainerSecurity&, const ContainerSecurity&) = default;
};

// A part of a container's configuration that is read only for stages that look at it.
enum class Detail : uint32_t {
  kEnvironment = 1U << 0,
  kCommand = 1U << 1,  // command and arguments
  kMounts = 1U << 2,
  kDevices = 1U << 3,    // and CDI devices
  kResources = 1U << 4,  // the fields of LinuxContainerResources that LinuxResources lacks
  kSandbox = 1U << 5,    // the request's data about the pod sandbox
  kHooks = 1U << 6,      // and resource limits
  kImage = 1U << 7,
  kSecurity = 1U << 8,
};

class DetailSet {
 public:
  constexpr DetailSet() = default;
  constexpr DetailSet(std::initializer_list<Detail> details) {
    for (const Detail detail : details)
      bits_ |= static_cast<uint32_t>(detail);
  }
  constexpr bool empty() const { return bits_ == 0; }
  constexpr bool contains(Detail detail) const {
    return (bits_ & static_cast<uint32_t>(detail)) != 0;
  }
  // This set without `others`.
  constexpr DetailSet Without(DetailSet others) const {
    others.bits_ = bits_ & ~others.bits_;
    return others;
  }
  constexpr DetailSet operator|(DetailSet others) const {
    others.bits_ |= bits_;
    return others;
  }

 private:
  uint32_t bits_ = 0;
};

inline constexpr DetailSet kAllDetails{Detail::kEnvironment, Detail::kCommand,   Detail::kMounts,
                                       Detail::kDevices,     Detail::kResources, Detail::kSandbox,
                                       Detail::kHooks,       Detail::kImage,     Detail::kSecurity};

// The configuration of a container beyond CreateRequest, in the order of the request. Fields that
// the request lacks are empty; a CRI request never has hooks or resource limits.
struct ContainerDetails {
  Environment environment;
  std::vector<std::string> command;  // empty: the image's
  std::vector<std::string> args;
  std::vector<Mount> mounts;
  std::vector<Device> devices;
  std::vector<std::string> cdi_devices;
  std::optional<int64_t> memory_swap_limit;  // bytes, of memory and swap together
  StringMap unified;                         // cgroup v2 file to value
  std::string cgroup_parent;                 // of the pod
  std::vector<OciHook> hooks;
  std::vector<ResourceLimit> resource_limits;
  std::string image;            // the reference that the runtime gets
  std::string specified_image;  // the reference in the pod; empty: the same
  ContainerSecurity security;
};

}  // namespace resmgr
