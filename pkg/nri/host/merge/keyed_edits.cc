// SPDX-License-Identifier: Apache-2.0
#include "pkg/nri/host/merge/keyed_edits.h"

#include "pkg/base/parse.h"

namespace resmgr::nri {
namespace {

constexpr char kMark = '-';

Status CheckKey(const FieldLedger::Claimant& claimant, api::Field field, std::string_view key) {
  constexpr std::string_view kNotInNames("=\0", 2);
  const bool bad = field == api::FIELD_ENV && key.find_first_of(kNotInNames) != key.npos;
  if (!key.empty() && !bad) return OkStatus();
  return InvalidArgument("plugin \"{}\": {} has an entry with the key \"{}\"",
                         Printable(claimant.plugin()), FieldName(field), Printable(key));
}

}  // namespace

std::optional<std::string_view> RemovedKey(std::string_view written) {
  if (!written.starts_with(kMark)) return std::nullopt;
  return written.substr(1);
}

std::string Removal(std::string_view key) {
  std::string written(1, kMark);
  written += key;
  return written;
}

Status ClaimEntry(const FieldLedger::Claimant& claimant, api::Field field, std::string_view key) {
  RESMGR_RETURN_IF_ERROR(CheckKey(claimant, field, key));
  return claimant.Claim(field, key);
}

Status ClearEntry(const FieldLedger::Claimant& claimant, api::Field field, std::string_view key) {
  RESMGR_RETURN_IF_ERROR(CheckKey(claimant, field, key));
  claimant.Clear(field, key);
  return OkStatus();
}

}  // namespace resmgr::nri
