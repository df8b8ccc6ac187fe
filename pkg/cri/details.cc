// SPDX-License-Identifier: Apache-2.0
#include "pkg/cri/details.h"

#include <string>
#include <utility>
#include <vector>

#include "pkg/cri/for_each_field.h"
#include "pkg/cri/security.h"

namespace resmgr {

namespace {

// Reads a KeyValue.
bool ReadVariable(std::string_view message, EnvironmentVariable& variable) {
  return ForEachField(message, [&variable](const WireReader& field) {
    if (field.field() == 1) variable.name = field.bytes();
    if (field.field() == 2) variable.value = field.bytes();
    return true;
  });
}

bool ReadWholeMount(std::string_view message, Mount& mount) {
  return ForEachField(message, [&](const WireReader& field) {
    switch (field.field()) {
      case 1:
        mount.container_path = field.bytes();
        return true;
      case 2:
        mount.host_path = field.bytes();
        return true;
      case 3:
        mount.read_only = field.number() != 0;
        return true;
      case 4:
        mount.selinux_relabel = field.number() != 0;
        return true;
      case 5:
        if (field.number() <= 2) mount.propagation = Mount::Propagation(field.number());
        return true;
      case 8:
        mount.recursive_read_only = field.number() != 0;
        return true;
      case 9:
        return ForFields(field.bytes(), 1U << 1, [&mount](const WireReader& image) {
          mount.image = image.bytes();
          return true;
        });
      default:
        return true;
    }
  });
}

bool ReadWholeDevice(std::string_view message, Device& device) {
  return ForEachField(message, [&](const WireReader& field) {
    if (field.field() == 1) device.container_path = field.bytes();
    if (field.field() == 2) device.host_path = field.bytes();
    if (field.field() == 3) device.permissions = field.bytes();
    return true;
  });
}

// Reads a LinuxContainerResources.
bool ReadMoreResources(std::string_view message, ContainerDetails& details) {
  std::vector<StringMap::value_type> unified;
  const bool ok = ForEachField(message, [&](const WireReader& field) {
    if (field.field() == 10) details.memory_swap_limit = static_cast<int64_t>(field.number());
    if (field.field() != 9) return true;
    StringMap::value_type& entry = unified.emplace_back();
    return ForEachField(field.bytes(), [&entry](const WireReader& part) {
      if (part.field() == 1) entry.first = part.bytes();
      if (part.field() == 2) entry.second = part.bytes();
      return true;
    });
  });
  if (!unified.empty()) details.unified = StringMap(std::span(unified));
  return ok;
}

// Reads a LinuxContainerConfig.
bool ReadLinux(std::string_view message, DetailSet parts, ContainerDetails& details) {
  return ForEachField(message, [&](const WireReader& field) {
    if (field.field() == 1 && parts.contains(Detail::kResources)) {
      return ReadMoreResources(field.bytes(), details);
    }
    if (field.field() == 2 && parts.contains(Detail::kSecurity)) {
      return DecodeSecurity(field.bytes(), details.security);
    }
    return true;
  });
}

// Reads an ImageSpec.
bool ReadImage(std::string_view message, ContainerDetails& details) {
  return ForEachField(message, [&](const WireReader& field) {
    if (field.field() == 1) details.image = field.bytes();
    if (field.field() == 18) details.specified_image = field.bytes();
    return true;
  });
}

// Reads any field but the environment.
bool ReadField(const WireReader& field, DetailSet parts, ContainerDetails& details) {
  switch (field.field()) {
    case 2:
      return !parts.contains(Detail::kImage) || ReadImage(field.bytes(), details);
    case 3:
      if (parts.contains(Detail::kCommand)) details.command.emplace_back(field.bytes());
      return true;
    case 4:
      if (parts.contains(Detail::kCommand)) details.args.emplace_back(field.bytes());
      return true;
    case 7:
      return !parts.contains(Detail::kMounts) ||
             ReadWholeMount(field.bytes(), details.mounts.emplace_back());
    case 8:
      return !parts.contains(Detail::kDevices) ||
             ReadWholeDevice(field.bytes(), details.devices.emplace_back());
    case 15:
      return ReadLinux(field.bytes(), parts, details);
    case 17:
      return !parts.contains(Detail::kDevices) ||
             ForEachField(field.bytes(), [&details](const WireReader& name) {
               if (name.field() == 1) details.cdi_devices.emplace_back(name.bytes());
               return true;
             });
    default:
      return true;
  }
}

}  // namespace

bool DecodeDetails(std::string_view config, std::string_view sandbox_config, DetailSet parts,
                   ContainerDetails& details) {
  // Usual limit of variables; a creation has dozens, which are added at once.
  constexpr size_t kMostly = 64;
  std::vector<EnvironmentVariable> variables;
  if (parts.contains(Detail::kEnvironment)) variables.reserve(kMostly);
  const bool ok = ForEachField(config, [&](const WireReader& field) {
    if (field.field() != 6) return ReadField(field, parts, details);
    return !parts.contains(Detail::kEnvironment) ||
           ReadVariable(field.bytes(), variables.emplace_back());
  });
  details.environment.Add(variables);
  if (!ok || !parts.contains(Detail::kSandbox)) return ok;
  return ForFields(sandbox_config, 1U << 8, [&](const WireReader& sandbox) {
    return ForFields(sandbox.bytes(), 1U << 1, [&](const WireReader& parent) {
      details.cgroup_parent = parent.bytes();
      return true;
    });
  });
}

bool DecodeUpdateDetails(std::string_view message, DetailSet parts, ContainerDetails& details) {
  if (!parts.contains(Detail::kResources)) return true;
  return ForFields(message, 1U << 2, [&details](const WireReader& resources) {
    return ReadMoreResources(resources.bytes(), details);
  });
}

}  // namespace resmgr
