// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include <google/protobuf/message.h>

#include "pkg/nri/host/field_ledger.h"

namespace resmgr::nri {

// A field of a message that has one owner: a message of its own, which says by being there that a
// value is set, also where it is 0 (protobuf's own merge would let such a 0 fall), or a text that
// is not empty.
struct SimpleField {
  int number = 0;
  api::Field field = api::FIELD_NONE;
};

bool AnySet(const google::protobuf::Message& message, std::span<const SimpleField> fields);
Status ClaimSet(const google::protobuf::Message& message, std::span<const SimpleField> fields,
                const FieldLedger::Claimant& claimant);
// Takes what is set as a whole; both messages are of one type.
void CopySet(const google::protobuf::Message& from, std::span<const SimpleField> fields,
             google::protobuf::Message& to);

// Resources of Linux. Rules for devices have no owners: they add up.
bool AnySet(const api::LinuxResources& resources);
Status ClaimResources(const api::LinuxResources& resources, const FieldLedger::Claimant& claimant);
// To what plugins want so far. The claims were granted, which makes pages' sizes unique. Takes time
// in proportion to `wanted` alone, so that many small updates of one container cost no more.
void AddResources(const api::LinuxResources& wanted, api::LinuxResources& merged);
// Over resources that a container has.
void OverlayResources(const api::LinuxResources& wanted, api::LinuxResources& resources);

}  // namespace resmgr::nri
