// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include <google/protobuf/message.h>

#include "pkg/nri/host/merge/field_ledger.h"

namespace resmgr::nri {

// A field of a message that has one owner: a message of its own, whose presence tells that a value
// is set, even if it is 0 (protobuf's own merge would lose such a 0), or a non-empty string.
struct SimpleField {
  int number = 0;
  api::Field field = api::FIELD_NONE;
};

bool AnySet(const google::protobuf::Message& message, std::span<const SimpleField> fields);
Status ClaimSet(const google::protobuf::Message& message, std::span<const SimpleField> fields,
                const FieldLedger::Claimant& claimant);
// Copies the set fields as a whole; both messages are of one type.
void CopySet(const google::protobuf::Message& from, std::span<const SimpleField> fields,
             google::protobuf::Message& to);

// Whether any Linux resource is set. Rules for devices have no owners: they add up.
bool AnySet(const api::LinuxResources& resources);
Status ClaimResources(const api::LinuxResources& resources, const FieldLedger::Claimant& claimant);
// Adds resources to the sum of all plugins' wishes. The claims were granted, which makes page sizes
// unique. Takes time in proportion to `wanted` alone, so that many small updates of one container
// cost no more.
void AddResources(const api::LinuxResources& wanted, api::LinuxResources& merged);
// Sets the wanted resources in those of a container.
void OverlayResources(const api::LinuxResources& wanted, api::LinuxResources& resources);

}  // namespace resmgr::nri
