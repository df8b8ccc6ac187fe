// SPDX-License-Identifier: Apache-2.0
#include "pkg/cri/edit_fields.h"

#include <array>

#include "pkg/api/runtime_v1.pb.h"
#include "pkg/model/unified_files.h"

namespace resmgr {
namespace {

namespace v1 = ::runtime::v1;
using Linux = v1::LinuxContainerResources;

constexpr std::array<uint32_t, 3> kResources = {v1::ContainerStatusResponse::kStatusFieldNumber,
                                                v1::ContainerStatus::kResourcesFieldNumber,
                                                v1::ContainerResources::kLinuxFieldNumber};

// Returns the number in this field; nullptr if the field has none of CpuNumbers.
std::optional<int64_t>* NumberOf(uint32_t field, CpuNumbers& numbers) {
  switch (field) {
    case Linux::kCpuPeriodFieldNumber:
      return &numbers.period;
    case Linux::kCpuQuotaFieldNumber:
      return &numbers.quota;
    case Linux::kCpuSharesFieldNumber:
      return &numbers.shares;
    default:
      return nullptr;
  }
}

constexpr std::array<uint32_t, 3> kNumbers = {
    Linux::kCpuPeriodFieldNumber, Linux::kCpuQuotaFieldNumber, Linux::kCpuSharesFieldNumber};

// Whether an entry of the map of files sets the CPU shares.
bool SaysShares(std::string_view entry) {
  std::string_view file;
  std::string_view value;
  (void)ReadPair(entry, file, value);
  const std::optional<FieldChange> said = FieldOfFile(file, value);
  return said && said->field == Field::kCpuShares;
}

std::optional<CpuNumbers> Read(std::string_view linux) {
  CpuNumbers numbers;
  WireReader reader(linux);
  while (reader.Next()) {
    std::optional<int64_t>* const number = NumberOf(reader.field(), numbers);
    if (number != nullptr) *number = static_cast<int64_t>(reader.number());
    if (reader.field() == Linux::kUnifiedFieldNumber && reader.is_bytes()) {
      numbers.shares_in_file |= SaysShares(reader.bytes());
    }
  }
  if (reader.failed()) return std::nullopt;
  return numbers;
}

// 0 means unset, and is not written.
void Write(uint32_t field, const std::optional<int64_t>& number, std::string& out) {
  if (number.value_or(0) != 0) FieldWriter(out).Number(field, static_cast<uint64_t>(*number));
}

std::optional<std::string> Edited(std::string_view linux,
                                  const std::function<void(CpuNumbers&)>& edit) {
  std::optional<CpuNumbers> reported = Read(linux);
  if (!reported) return std::nullopt;
  CpuNumbers shown = *reported;
  edit(shown);
  if (shown == *reported) return std::nullopt;
  std::string out;
  CpuNumbers left = shown;  // numbers still to be written
  std::string_view rest = linux;
  WireReader reader(linux);
  while (reader.Next()) {
    const std::string_view raw = rest.substr(0, rest.size() - reader.rest().size());
    rest = reader.rest();
    std::optional<int64_t>* const number = NumberOf(reader.field(), left);
    const bool file_goes = reported->shares_in_file && !shown.shares_in_file &&
                           reader.field() == Linux::kUnifiedFieldNumber && reader.is_bytes() &&
                           SaysShares(reader.bytes());
    if (file_goes) continue;
    if (number == nullptr ||
        *NumberOf(reader.field(), shown) == *NumberOf(reader.field(), *reported)) {
      out += raw;
    } else {
      Write(reader.field(), *number, out);
    }
    if (number != nullptr) number->reset();
  }
  for (const uint32_t field : kNumbers)
    Write(field, *NumberOf(field, left), out);
  return out;
}

}  // namespace

std::optional<std::string> EditFields(std::string_view message, std::span<const uint32_t> path,
                                      const FieldEdit& edit) {
  std::string out;
  bool changes = false;
  std::string_view unchanged = message;  // the bytes after the last change
  std::string_view rest = message;
  WireReader reader(message);
  while (reader.Next()) {
    const std::string_view from_field = rest;
    rest = reader.rest();
    if (reader.field() != path.front() || !reader.is_bytes()) continue;
    const std::optional<std::string> changed =
        path.size() == 1 ? edit(reader.bytes()) : EditFields(reader.bytes(), path.subspan(1), edit);
    if (!changed) continue;
    changes = true;
    out += unchanged.substr(0, unchanged.size() - from_field.size());
    FieldWriter(out).Bytes(path.front(), *changed);
    unchanged = rest;
  }
  if (!changes || reader.failed()) return std::nullopt;
  out += unchanged;
  return out;
}

std::optional<std::string> WithoutFields(std::string_view message,
                                         const std::function<bool(const WireReader&)>& drop) {
  std::string kept;
  std::string_view rest = message;
  WireReader reader(message);
  while (reader.Next()) {
    if (!drop(reader)) kept += rest.substr(0, rest.size() - reader.rest().size());
    rest = reader.rest();
  }
  if (reader.failed() || kept.size() == message.size()) return std::nullopt;
  return kept;
}

std::string WithText(std::string_view message, uint32_t field, std::string_view text) {
  const std::array path = {field};
  std::optional<std::string> changed =
      EditFields(message, path, [text](std::string_view) { return std::string(text); });
  if (changed) return *std::move(changed);
  std::string longer(message);
  FieldWriter(longer).Bytes(field, text);
  return longer;
}

bool ReadTextField(std::string_view message, uint32_t field, std::string_view& text) {
  return ForEachField(message, [&](const WireReader& reader) {
    if (reader.field() == field && reader.is_bytes()) text = reader.bytes();
    return true;
  });
}

std::string_view TextOfField(std::string_view message, uint32_t field) {
  std::string_view text;
  return ReadTextField(message, field, text) ? text : std::string_view();
}

bool ReadPair(std::string_view entry, std::string_view& key, std::string_view& value) {
  return ForEachField(entry, [&](const WireReader& part) {
    if (part.field() == 1) key = part.bytes();
    if (part.field() == 2) value = part.bytes();
    return true;
  });
}

std::optional<std::string> WithCpuNumbers(std::string_view response,
                                          const std::function<void(CpuNumbers&)>& edit) {
  return EditFields(response, kResources,
                    [&edit](std::string_view linux) { return Edited(linux, edit); });
}

}  // namespace resmgr
