// SPDX-License-Identifier: Apache-2.0
#include "pkg/classes/device_lines.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <utility>

#include "pkg/base/parse.h"

namespace resmgr {
namespace {

constexpr std::string_view kDefaultWord = "default";

// One kind of files with a line for each device.
struct LineFile {
  std::string_view name;
  std::string_view reset;  // the value that takes a device's line away
  bool has_default;        // a line for all other devices, which cannot be taken away
};

constexpr std::array kLineFiles = {
    LineFile{"io.max", "rbps=max wbps=max riops=max wiops=max", false},
    LineFile{"io.weight", kDefaultWord, true},
    LineFile{"io.bfq.weight", kDefaultWord, true},
    LineFile{"blkio.throttle.read_bps_device", "0", false},
    LineFile{"blkio.throttle.write_bps_device", "0", false},
    LineFile{"blkio.throttle.read_iops_device", "0", false},
    LineFile{"blkio.throttle.write_iops_device", "0", false},
    LineFile{"blkio.bfq.weight_device", kDefaultWord, false},
};

const LineFile* DeviceFileOf(std::string_view path) {
  const std::string_view name = path.substr(path.rfind('/') + 1);
  const auto* const found = std::ranges::find(kLineFiles, name, &LineFile::name);
  return found == kLineFiles.end() ? nullptr : found;
}

// The device's numbers, and before all of them the word "default".
using LineKey = std::pair<uint64_t, uint64_t>;
constexpr LineKey kDefaultKey = {0, 0};

std::optional<LineKey> KeyOfLine(std::string_view word) {
  if (word == kDefaultWord) return kDefaultKey;
  const size_t colon = word.find(':');
  if (colon == std::string_view::npos) return std::nullopt;
  const std::optional<uint64_t> major = ParseUint(word.substr(0, colon));
  const std::optional<uint64_t> minor = ParseUint(word.substr(colon + 1));
  if (!major || !minor) return std::nullopt;
  return LineKey(*major, *minor);
}

std::string KeyText(const LineKey& key) {
  return key == kDefaultKey ? std::string(kDefaultWord)
                            : fmt::format("{}:{}", key.first, key.second);
}

std::map<LineKey, std::string> ParseLines(const LineFile& file, std::string_view text) {
  std::map<LineKey, std::string> lines;
  for (std::string_view line : Split(text, '\n')) {
    line = Trim(line);
    const size_t space = line.find(' ');
    if (space == std::string_view::npos) continue;
    const std::optional<LineKey> key = KeyOfLine(line.substr(0, space));
    const std::string_view value = Trim(line.substr(space));
    if (!key || (*key == kDefaultKey && !file.has_default)) continue;
    if (value != file.reset) lines[*key] = value;
  }
  return lines;
}

}  // namespace

std::string NormalDeviceLines(std::string_view path, std::string_view text) {
  const LineFile* const file = DeviceFileOf(path);
  if (file == nullptr) return std::string(text);
  std::string normal;
  for (const auto& [key, value] : ParseLines(*file, text))
    normal.append(normal.empty() ? "" : "\n").append(KeyText(key)).append(" ").append(value);
  return normal;
}

bool MixesDeviceLines(std::string_view path, std::string_view now,
                      const std::vector<std::string_view>& texts) {
  const LineFile* const file = DeviceFileOf(path);
  if (file == nullptr) return false;
  using Lines = std::map<LineKey, std::string>;
  std::vector<Lines> sources;
  for (const std::string_view text : texts)
    sources.push_back(ParseLines(*file, text));
  const Lines mixed = ParseLines(*file, now);
  const auto value = [](const Lines& lines, const LineKey& key) {
    const auto line = lines.find(key);
    return line == lines.end() ? std::string_view() : std::string_view(line->second);
  };
  const auto comes_from_one = [&](const auto& line) {
    return std::ranges::any_of(sources, [&](const Lines& source) {
      return value(source, line.first) == value(mixed, line.first);
    });
  };
  const auto is_mix = [&](const Lines& lines) {
    return std::ranges::all_of(lines, comes_from_one);
  };
  return is_mix(mixed) && std::ranges::all_of(sources, is_mix);
}

StatusOr<std::string> DeviceLines::Read(const std::string& path) {
  RESMGR_ASSIGN_OR_RETURN(const std::string text, files_.Read(path));
  return NormalDeviceLines(path, text);
}

int DeviceLines::Write(const std::string& path, std::string_view text) {
  const LineFile* const file = DeviceFileOf(path);
  if (file == nullptr) return files_.Write(path, text);
  const StatusOr<std::string> before = files_.Read(path);
  const auto now = before.ok() ? ParseLines(*file, *before) : std::map<LineKey, std::string>();
  const auto wanted = ParseLines(*file, text);
  int first_error = 0;
  const auto write = [&](const LineKey& key, std::string_view value) {
    const int error = files_.Write(path, fmt::format("{} {}", KeyText(key), value));
    if (first_error == 0) first_error = error;
  };
  for (const auto& [key, value] : now)
    if (!wanted.contains(key) && key != kDefaultKey) write(key, file->reset);
  for (const auto& [key, value] : wanted) {
    const auto known = now.find(key);
    if (known == now.end() || known->second != value) write(key, value);
  }
  return first_error;
}

}  // namespace resmgr
