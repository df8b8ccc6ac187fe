// SPDX-License-Identifier: Apache-2.0
#include "pkg/dra/cdi_spec.h"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "pkg/base/json.h"
#include "pkg/claims/claim_names.h"

namespace resmgr::dra {
namespace {

constexpr std::string_view kTemporary = ".tmp";  // of AtomicWriteFile

// The part of a name before the UID.
std::string FilePrefix(std::string_view kind) {
  std::string prefix(kind);
  std::ranges::replace(prefix, '/', '-');
  return prefix + "_" + ClaimDeviceName("");
}

}  // namespace

std::string CdiSpec(std::string_view kind, std::string_view uid, const CpuSet& cpus) {
  nlohmann::ordered_json environment = nlohmann::ordered_json::array();
  environment.push_back(fmt::format("{}={}", ClaimVariable(uid), cpus.ToString()));
  nlohmann::ordered_json device;
  device["name"] = ClaimDeviceName(uid);
  device["containerEdits"]["env"] = std::move(environment);
  nlohmann::ordered_json spec;
  spec["cdiVersion"] = kCdiVersion;
  spec["kind"] = kind;
  spec["devices"] = nlohmann::ordered_json::array({std::move(device)});
  return OrderedJsonText(spec) + "\n";
}

std::string CdiFileName(std::string_view kind, std::string_view uid) {
  return fmt::format("{}{}{}", FilePrefix(kind), uid, kCdiExtension);
}

std::optional<std::string> UidInFileName(std::string_view prefix, std::string_view file_name) {
  if (file_name.ends_with(kTemporary)) file_name.remove_suffix(kTemporary.size());
  if (!file_name.ends_with(kCdiExtension)) return std::nullopt;
  file_name.remove_suffix(kCdiExtension.size());
  if (!file_name.starts_with(prefix)) return std::nullopt;
  const std::string_view uid = file_name.substr(prefix.size());
  return IsClaimUid(uid) ? std::optional(std::string(uid)) : std::nullopt;
}

std::optional<std::string> UidOfCdiFile(std::string_view file_name) {
  for (const std::string_view kind : {kClaimKind, kCompatibleClaimKind})
    if (std::optional<std::string> uid = UidInFileName(FilePrefix(kind), file_name)) return uid;
  return std::nullopt;
}

}  // namespace resmgr::dra
