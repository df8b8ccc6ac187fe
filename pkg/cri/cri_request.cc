// SPDX-License-Identifier: Apache-2.0
#include "pkg/cri/cri_request.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "pkg/cri/edit_fields.h"

namespace resmgr {
namespace {

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
  // Files of former occurrences of the message stay.
  std::vector<StringMap::value_type> unified(details.unified.begin(), details.unified.end());
  const bool ok = ForEachField(message, [&](const WireReader& field) {
    if (field.field() == 10) details.memory_swap_limit = static_cast<int64_t>(field.number());
    if (field.field() != 9) return true;
    StringMap::value_type& entry = unified.emplace_back();
    return ReadPair(field.bytes(), entry.first, entry.second);
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

// The fields of a ContainerConfig that have these parts, as bits.
uint32_t FieldsOf(DetailSet parts) {
  uint32_t fields = 0;
  const auto add = [&fields, parts](Detail part, uint32_t its) {
    if (parts.contains(part)) fields |= its;
  };
  add(Detail::kImage, 1U << 2);
  add(Detail::kCommand, 1U << 3 | 1U << 4);
  add(Detail::kEnvironment, 1U << 6);
  add(Detail::kMounts, 1U << 7);
  add(Detail::kDevices, 1U << 8 | 1U << 17);
  add(Detail::kResources, 1U << 15);
  add(Detail::kSecurity, 1U << 15);
  return fields;
}

// Reads one of FieldsOf(parts), but not the environment.
bool ReadField(const WireReader& field, DetailSet parts, ContainerDetails& details) {
  switch (field.field()) {
    case 2:
      return ReadImage(field.bytes(), details);
    case 3:
      details.command.emplace_back(field.bytes());
      return true;
    case 4:
      details.args.emplace_back(field.bytes());
      return true;
    case 7:
      return ReadWholeMount(field.bytes(), details.mounts.emplace_back());
    case 8:
      return ReadWholeDevice(field.bytes(), details.devices.emplace_back());
    case 15:
      return ReadLinux(field.bytes(), parts, details);
    case 17:
      return ForEachField(field.bytes(), [&details](const WireReader& name) {
        if (name.field() == 1) details.cdi_devices.emplace_back(name.bytes());
        return true;
      });
    default:
      return true;
  }
}

bool ReadNamespaces(std::string_view message, ContainerSecurity& security) {
  return ForEachField(message, [&security](const WireReader& field) {
    if (field.number() > static_cast<uint64_t>(NamespaceMode::kTarget)) return true;
    const auto mode = static_cast<NamespaceMode>(field.number());
    if (field.field() == 1) security.network = mode;
    if (field.field() == 2) security.pid = mode;
    if (field.field() == 3) security.ipc = mode;
    return true;
  });
}

// Reads an Int64Value.
bool ReadValue(std::string_view message, std::optional<int64_t>& value) {
  value.emplace(value.value_or(0));  // an empty message is a set value of 0
  return ForFields(message, 1U << 1, [&value](const WireReader& field) {
    value = static_cast<int64_t>(field.number());
    return true;
  });
}

bool ReadSeccomp(std::string_view message, std::optional<SeccompProfile>& profile) {
  if (!profile) profile.emplace();
  return ForEachField(message, [&profile](const WireReader& field) {
    if (field.field() == 1 &&
        field.number() <= static_cast<uint64_t>(SeccompProfile::Kind::kLocalhost)) {
      profile->kind = static_cast<SeccompProfile::Kind>(field.number());
    }
    if (field.field() == 2) profile->path = field.bytes();
    return true;
  });
}

// Reads one number, or several packed ones.
bool ReadGroups(const WireReader& field, std::vector<int64_t>& groups) {
  if (!field.is_bytes()) {
    groups.push_back(static_cast<int64_t>(field.number()));
    return true;
  }
  uint64_t number = 0;
  unsigned shift = 0;
  for (const char c : field.bytes()) {
    const auto byte = static_cast<uint8_t>(c);
    if (shift > 63) return false;
    number |= uint64_t{byte & 0x7fU} << shift;
    shift += 7;
    if ((byte & 0x80) != 0) continue;
    groups.push_back(static_cast<int64_t>(number));
    number = 0;
    shift = 0;
  }
  return shift == 0;
}

// The form of kubelets before 1.19; later ones may add it beside the newer form, which has
// precedence.
SeccompProfile ReadProfilePath(std::string_view path) {
  constexpr std::string_view kLocalhost = "localhost/";
  if (path == "unconfined") return {.kind = SeccompProfile::Kind::kUnconfined};
  if (!path.starts_with(kLocalhost)) return {.kind = SeccompProfile::Kind::kRuntimeDefault};
  return {.kind = SeccompProfile::Kind::kLocalhost,
          .path = std::string(path.substr(kLocalhost.size()))};
}

// DecodeDetails for an UpdateContainerResourcesRequest, which has only Detail::kResources.
bool DecodeUpdateDetails(std::string_view message, DetailSet parts, ContainerDetails& details) {
  if (!parts.contains(Detail::kResources)) return true;
  return ForFields(message, 1U << 2, [&details](const WireReader& resources) {
    return ReadMoreResources(resources.bytes(), details);
  });
}

}  // namespace

bool CriRequest::Read(std::string_view message) {
  message_ = message;
  switch (request_.operation()) {
    case Operation::kCreateContainer:
      if (!ReadCreate(request_.body.emplace<CreateRequest>())) return false;
      request_.files = std::move(parts_.files);
      return true;
    case Operation::kUpdateContainerResources:
      return ReadUpdate(message);
    case Operation::kUpdatePodSandboxResources:
      return ReadPodUpdate(message);
    case Operation::kRunPodSandbox: {
      auto pod = DecodeRunPodSandbox(message);
      request_.pod_attempt = DecodeSandboxAttempt(message);
      if (!pod.ok()) return false;
      request_.body = *std::move(pod);
      return true;
    }
    default:
      return ReadIds(message);
  }
}

bool CriRequest::ReadIds(std::string_view message) {
  const auto id = DecodeId(message);
  if (!id.ok()) return false;
  const Operation operation = request_.operation();
  if (operation == Operation::kStopPodSandbox || operation == Operation::kRemovePodSandbox) {
    request_.pod_id = PodSandboxId(*id);
  } else {
    request_.container_id = ContainerId(*id);
  }
  return true;
}

bool CriRequest::ReadUpdate(std::string_view message) {
  auto decoded = DecodeUpdateContainerResources(message);
  if (!decoded.ok()) return false;
  request_.container_id = std::move(decoded->id);
  request_.body = std::move(decoded->update);
  request_.files = std::move(decoded->files);
  return true;
}

bool CriRequest::ReadPodUpdate(std::string_view message) {
  auto decoded = DecodeUpdatePodSandboxResources(message);
  if (!decoded.ok()) return false;
  request_.pod_id = std::move(decoded->id);
  request_.body = std::move(decoded->update);
  return true;
}

bool CriRequest::ReadCreate(CreateRequest& create) {
  return DecodeCreateContainer(message_, create, parts_).ok();
}

std::optional<Pod> CriRequest::ReadPod() {
  if (parts_.sandbox_config.empty()) return std::nullopt;
  auto pod = DecodeSandboxConfig(parts_.sandbox_config);
  if (!pod.ok()) return std::nullopt;
  return *std::move(pod);
}

bool CriRequest::ReadDetails(DetailSet parts, ContainerDetails& details) {
  if (request_.operation() == Operation::kUpdateContainerResources) {
    return DecodeUpdateDetails(message_, parts, details);
  }
  return DecodeDetails(parts_.config, parts_.sandbox_config, parts, details);
}

bool RepliesTell(Operation operation) {
  return operation == Operation::kCreateContainer || operation == Operation::kRunPodSandbox ||
         operation == Operation::kContainerStatus;
}

Outcome ReadOutcome(Operation operation, int code, std::string_view message) {
  Outcome outcome{.code = code};
  if (code != 0 || !RepliesTell(operation)) return outcome;
  if (operation == Operation::kContainerStatus) {
    outcome.id = DecodeExited(message).value_or(std::string_view());
  } else {
    outcome.id = DecodeId(message).value_or(std::string_view());
  }
  return outcome;
}

bool DecodeDetails(std::string_view config, std::string_view sandbox_config, DetailSet parts,
                   ContainerDetails& details) {
  // Reserved for the environment: a container has dozens of variables, which are added at once.
  constexpr size_t kMostly = 64;
  std::vector<EnvironmentVariable> variables;
  if (parts.contains(Detail::kEnvironment)) variables.reserve(kMostly);
  const bool ok = ForFields(config, FieldsOf(parts), [&](const WireReader& field) {
    if (field.field() != 6) return ReadField(field, parts, details);
    EnvironmentVariable& variable = variables.emplace_back();
    return ReadPair(field.bytes(), variable.name, variable.value);
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

bool DecodeSecurity(std::string_view message, ContainerSecurity& security) {
  std::string_view profile_path;
  const bool ok = ForEachField(message, [&](const WireReader& field) {
    switch (field.field()) {
      case 2:
        security.privileged = field.number() != 0;
        return true;
      case 3:
        return ReadNamespaces(field.bytes(), security);
      case 5:
        return ReadValue(field.bytes(), security.user);
      case 8:
        return ReadGroups(field, security.supplemental_groups);
      case 10:
        profile_path = field.bytes();
        return true;
      case 12:
        return ReadValue(field.bytes(), security.group);
      case 15:
        return ReadSeccomp(field.bytes(), security.seccomp);
      default:
        return true;
    }
  });
  if (ok && !security.seccomp && !profile_path.empty()) {
    security.seccomp = ReadProfilePath(profile_path);
  }
  return ok;
}

}  // namespace resmgr
