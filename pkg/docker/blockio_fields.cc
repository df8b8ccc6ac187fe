// SPDX-License-Identifier: Apache-2.0
#include "pkg/docker/blockio_fields.h"

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "pkg/base/parse.h"
#include "pkg/docker/json_text.h"

namespace resmgr::docker {
namespace {

constexpr std::string_view kIoMax = "io.max";
constexpr std::string_view kIoWeight = "io.weight";

// The keys of io.max and the fields with their meanings.
constexpr std::array<std::pair<std::string_view, std::string_view>, 4> kThrottles = {{
    {"rbps", "BlkioDeviceReadBps"},
    {"wbps", "BlkioDeviceWriteBps"},
    {"riops", "BlkioDeviceReadIOps"},
    {"wiops", "BlkioDeviceWriteIOps"},
}};

Status Malformed(std::string_view file, std::string_view line) {
  return InvalidArgument("unified {}: \"{}\" is no limit of a device", file, Printable(line, 128));
}

bool IsDeviceNumber(std::string_view word) {
  const size_t colon = word.find(':');
  return colon != std::string_view::npos && ParseUint(word.substr(0, colon)) &&
         ParseUint(word.substr(colon + 1));
}

std::string OfDevice(std::string_view device, std::string_view name, uint64_t value) {
  return fmt::format(R"({{"Path":"/dev/block/{}","{}":{}}})", device, name, value);
}

// The weight that runc turns into this io.weight: 1 + (weight - 10) * 9999 / 990, rounded down.
std::optional<uint64_t> WeightOf(std::string_view text) {
  constexpr uint64_t kMostUnified = 10'000;
  constexpr uint64_t kLeast = 10;
  constexpr uint64_t kSteps = 990;
  const std::optional<uint64_t> unified = ParseUint(text);
  if (!unified || *unified < 1 || *unified > kMostUnified) return std::nullopt;
  return kLeast + ((*unified - 1) * kSteps + kMostUnified - 2) / (kMostUnified - 1);
}

Status AddLimits(std::string_view value, NewMembers& members) {
  std::array<std::vector<std::string>, kThrottles.size()> lists;
  for (const std::string_view line : Split(value, '\n')) {
    const std::vector<std::string_view> words = Split(line, ' ');
    if (line.empty()) continue;
    if (!IsDeviceNumber(words[0])) return Malformed(kIoMax, line);
    for (size_t i = 1; i < words.size(); ++i) {
      bool known = false;
      for (size_t one = 0; one < kThrottles.size(); ++one) {
        const std::string key = fmt::format("{}=", kThrottles[one].first);
        if (!words[i].starts_with(key)) continue;
        const std::string_view text = words[i].substr(key.size());
        const std::optional<uint64_t> limit = ParseUint(text);
        known = text == "max" || limit;
        if (limit) lists[one].push_back(OfDevice(words[0], "Rate", *limit));
      }
      if (!known) return Malformed(kIoMax, line);
    }
  }
  for (size_t one = 0; one < kThrottles.size(); ++one)
    members.emplace_back(kThrottles[one].second, fmt::format("[{}]", JoinJson(lists[one])));
  return OkStatus();
}

Status AddWeights(std::string_view value, NewMembers& members) {
  std::vector<std::string> devices;
  for (const std::string_view line : Split(value, '\n')) {
    if (line.empty()) continue;
    const size_t space = line.find(' ');
    const std::string_view whose = line.substr(0, space);
    const std::optional<uint64_t> weight =
        space == std::string_view::npos ? std::nullopt : WeightOf(line.substr(space + 1));
    if (!weight || (whose != "default" && !IsDeviceNumber(whose)))
      return Malformed(kIoWeight, line);
    if (whose == "default") {
      members.emplace_back("BlkioWeight", fmt::format("{}", *weight));
    } else {
      devices.push_back(OfDevice(whose, "Weight", *weight));
    }
  }
  if (!devices.empty())
    members.emplace_back("BlkioWeightDevice", fmt::format("[{}]", JoinJson(devices)));
  return OkStatus();
}

}  // namespace

bool IsBlockioFile(std::string_view file) {
  return file == kIoMax || file == kIoWeight;
}

Status AddBlockio(std::string_view file, std::string_view value, NewMembers& members) {
  return file == kIoMax ? AddLimits(value, members) : AddWeights(value, members);
}

}  // namespace resmgr::docker
