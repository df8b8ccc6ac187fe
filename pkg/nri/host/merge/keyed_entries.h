// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "pkg/base/status.h"
#include "pkg/nri/host/merge/field_ledger.h"

namespace resmgr::nri {

// The key of an entry that a plugin removes has "-" in front (NRI 0.6). This concerns annotations,
// mounts, environment variables, devices, namespaces, sysctls and network devices.

// The removed key; nullopt: the entry is set.
std::optional<std::string_view> RemovedKey(std::string_view written);
std::string Removal(std::string_view key);

// Claims one entry by its key without the mark. kInvalidArgument: an impossible key: an empty one,
// or a variable's name with "=" or NUL, which could pass for another name.
Status ClaimEntry(const FieldLedger::Claimant& claimant, api::Field field, std::string_view key);
Status ClearEntry(const FieldLedger::Claimant& claimant, api::Field field, std::string_view key);

}  // namespace resmgr::nri
