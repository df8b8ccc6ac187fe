// SPDX-License-Identifier: Apache-2.0
#include "pkg/docker/host_config_lists.h"

#include <algorithm>
#include <cstdint>

#include <fmt/format.h>

#include "pkg/base/parse.h"
#include "pkg/docker/characters.h"
#include "pkg/docker/json_text.h"

namespace resmgr::docker {
namespace {

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

// The list without the elements that an edit removes or replaces; `key` gives an element's key.
template <typename Edits, typename Key>
std::vector<std::string> KeptOf(std::string_view list, const Edits& edits, Key key) {
  std::vector<std::string> parts;
  if (!IsJsonList(list)) return parts;
  ForEachElement(list, [&](std::string_view element) {
    if (edits.Find(key(element)) == nullptr) parts.emplace_back(element);
  });
  return parts;
}

std::string TextIn(std::string_view object, std::string_view field) {
  const std::string_view value = IsJsonObject(object) ? LastMember(object, field) : "";
  return IsJsonText(value) ? DecodeJsonText(value) : "";
}

std::string PathOfBind(std::string_view element) {
  const std::string text = IsJsonText(element) ? DecodeJsonText(element) : "";
  const size_t begin = text.find(':') + 1;  // a path alone is an anonymous volume's
  return text.substr(begin, text.find(':', begin) - begin);
}

Status AddMounts(std::string_view object, const KeyedEdits<Mount>& edits, NewMembers& members) {
  if (edits.empty()) return OkStatus();
  std::vector<std::string> binds =
      KeptOf(HostConfigMember(object, "Binds"), edits, [](auto e) { return PathOfBind(e); });
  std::vector<std::string> objects;
  for (const auto& edit : edits) {
    if (!edit.value) continue;
    // Also checks what neither form can express.
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

// The limit's type in the OCI's form; Docker's has no "RLIMIT_" and any case.
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
    // dockerd takes signed 64-bit numbers; -1 is unlimited.
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
  std::vector<std::string> options;
  const std::string_view list = HostConfigMember(object, "SecurityOpt");
  if (IsJsonList(list)) {
    ForEachElement(list, [&options](std::string_view element) {
      const std::string text = IsJsonText(element) ? DecodeJsonText(element) : "";
      if (!SeccompOf(text)) options.emplace_back(element);
    });
  }
  options.push_back(EncodeJsonText(fmt::format("{}={}", kSeccomp, profile)));
  members.emplace_back("SecurityOpt", "[" + JoinJson(options) + "]");
  return OkStatus();
}

}  // namespace

std::string_view HostConfigMember(std::string_view object, std::string_view field) {
  std::string_view member;
  ForEachMember(object, [&member, field](std::string_view name, std::string_view value) {
    if (!IsField(name, "HostConfig")) return;
    const std::string_view last = IsJsonObject(value) ? LastMember(value, field) : "null";
    if (!last.empty()) member = last;
  });
  return member;
}

// The separator is "=" or, without one, a colon.
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

}  // namespace resmgr::docker
