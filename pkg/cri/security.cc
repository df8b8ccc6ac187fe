// SPDX-License-Identifier: Apache-2.0
#include "pkg/cri/security.h"

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "pkg/cri/for_each_field.h"

namespace resmgr {
namespace {

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
  value.emplace(value.value_or(0));  // its presence means that it is set
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

}  // namespace

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
