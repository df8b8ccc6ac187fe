// SPDX-License-Identifier: Apache-2.0
#include "pkg/classes/blockio_limits.h"

#include <algorithm>
#include <array>
#include <memory>
#include <set>

#include <dirent.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "pkg/base/parse.h"
#include "pkg/kube/names.h"

namespace resmgr {
namespace {

std::string NumberText(const BlockDeviceNumber& number) {
  return fmt::format("{}:{}", number.first, number.second);
}

std::optional<BlockDeviceNumber> ParseDeviceNumber(std::string_view text) {
  const size_t colon = text.find(':');
  if (colon == std::string_view::npos) return std::nullopt;
  const std::optional<uint64_t> major = ParseUint(text.substr(0, colon));
  const std::optional<uint64_t> minor = ParseUint(text.substr(colon + 1));
  if (!major || !minor || *major > UINT32_MAX || *minor > UINT32_MAX) return std::nullopt;
  return BlockDeviceNumber(static_cast<uint32_t>(*major), static_cast<uint32_t>(*minor));
}

// The active word is the one in brackets: "none [mq-deadline] bfq".
std::string_view ActiveWord(std::string_view text) {
  const size_t begin = text.find('[');
  const size_t end = text.find(']');
  if (begin == std::string_view::npos || end == std::string_view::npos || end < begin) return "";
  return text.substr(begin + 1, end - begin - 1);
}

template <typename Value>
void OverrideValue(std::optional<Value>& value, const std::optional<Value>& later) {
  if (later) value = later;
}

class BlockioResolver {
 public:
  BlockioResolver(BlockDevices& devices, HostFiles& files) : devices_(devices), files_(files) {}

  void Add(const BlockioItem& item) {
    if (item.devices.empty()) return OverrideValue(limits_.weight, item.weight);
    for (const BlockDeviceNumber& number : DisksOf(item)) {
      DeviceLimits& limits = limits_.devices[number];
      OverrideValue(limits.read_bps, item.read_bps);
      OverrideValue(limits.write_bps, item.write_bps);
      OverrideValue(limits.read_iops, item.read_iops);
      OverrideValue(limits.write_iops, item.write_iops);
      OverrideValue(limits.weight, item.weight);
      if (item.weight) CheckScheduler(number, limits);
    }
  }
  BlockioLimits Take() {
    if (more_ > 0) limits_.notes.push_back(fmt::format("{} more such notes", more_));
    return std::move(limits_);
  }

 private:
  void Note(std::string text) {
    if (!noted_.insert(text).second) return;
    if (limits_.notes.size() + 1 < BlockioLimits::kMostNotes) {
      limits_.notes.push_back(std::move(text));
    } else {
      ++more_;
    }
  }
  std::set<BlockDeviceNumber> DisksOf(const BlockioItem& item) {
    std::set<BlockDeviceNumber> disks;
    for (const std::string& glob : item.devices) {
      bool any = false;
      for (const FoundDevice& device : devices_.Find(glob)) {
        if (!device.is_block) continue;
        any = true;
        disks.insert(DiskOf(device));
      }
      if (!any) Note(fmt::format("no block device matches {}", Printable(glob, 128)));
    }
    return disks;
  }
  BlockDeviceNumber DiskOf(const FoundDevice& device) {
    const std::string own = fmt::format("sys/dev/block/{}", NumberText(device.number));
    if (!files_.Read(own + "/partition").ok()) return device.number;
    const StatusOr<std::string> disk = files_.Read(own + "/../dev");
    const auto number = disk.ok() ? ParseDeviceNumber(Trim(*disk)) : std::nullopt;
    if (!number) return device.number;
    Note(fmt::format("{} is a partition: the limits are those of its whole disk {}",
                     Printable(device.path, 128), NumberText(*number)));
    return *number;
  }
  // io.cost.qos: "8:16 enable=1 ctrl=auto ...", with a line for each disk that was ever configured.
  bool HasCost(const BlockDeviceNumber& number) {
    const StatusOr<std::string> text = files_.Read("sys/fs/cgroup/io.cost.qos");
    if (!text.ok()) return false;
    const std::string begin = fmt::format("{} enable=1 ", NumberText(number));
    return std::ranges::any_of(Split(*text, '\n'), [&begin](std::string_view line) {
      return fmt::format("{} ", line).starts_with(begin);
    });
  }
  void CheckScheduler(const BlockDeviceNumber& number, DeviceLimits& limits) {
    limits.has_cost = HasCost(number);
    const std::string path = fmt::format("sys/dev/block/{}/queue/scheduler", NumberText(number));
    const StatusOr<std::string> text = files_.Read(path);
    if (!text.ok()) return;
    const std::string_view active = ActiveWord(*text);
    limits.has_bfq = active == "bfq" || active == "cfq";
    if (limits.has_bfq || limits.has_cost) return;
    Note(fmt::format("{}: with the scheduler {} a weight has an effect by io.cost alone",
                     NumberText(number), active.empty() ? Trim(*text) : active));
  }

  BlockDevices& devices_;
  HostFiles& files_;
  BlockioLimits limits_;
  std::set<std::string> noted_;
  size_t more_ = 0;
};

std::string LimitText(const std::optional<uint64_t>& value) {
  return value.value_or(0) == 0 ? "max" : fmt::format("{}", *value);
}

void AddBlockioFile(std::string name, const std::vector<std::string>& lines,
                    std::vector<BlockioFile>& files) {
  if (!lines.empty()) files.push_back({std::move(name), fmt::format("{}", fmt::join(lines, "\n"))});
}

std::vector<std::string> WeightLines(const BlockioLimits& limits, bool DeviceLimits::*knows,
                                     int64_t (*convert)(int64_t weight)) {
  // The kernel's default for a cgroup, in both weight files.
  constexpr int64_t kUsual = 100;
  std::vector<std::string> lines = {
      fmt::format("default {}", limits.weight ? convert(*limits.weight) : kUsual)};
  bool any = limits.weight.has_value();
  for (const auto& [number, device] : limits.devices) {
    if (!device.weight || !(device.*knows)) continue;
    any = true;
    lines.push_back(fmt::format("{} {}", NumberText(number), convert(*device.weight)));
  }
  if (!any) lines.clear();
  return lines;
}

// Whether some device has a limit of bytes or operations, or had one taken away.
bool Throttles(const BlockioLimits& limits) {
  return std::ranges::any_of(limits.devices, [](const auto& one) {
    const DeviceLimits& device = one.second;
    return device.read_bps || device.write_bps || device.read_iops || device.write_iops;
  });
}

bool IsGlobPart(std::string_view part) {
  return part.find_first_of("*?[") != std::string_view::npos;
}

// Names that begin with a dot match only a pattern that begins with a dot, as in a shell.
std::vector<std::string> MatchingNames(const std::string& directory, std::string_view pattern) {
  std::vector<std::string> names;
  const std::unique_ptr<DIR, int (*)(DIR*)> opened(::opendir(directory.c_str()), &::closedir);
  if (opened == nullptr) return names;
  while (const dirent* const entry = ::readdir(opened.get())) {
    const std::string_view name = entry->d_name;
    if (name == "." || name == ".." || (name.starts_with('.') && !pattern.starts_with('.')))
      continue;
    if (MatchesGlob(pattern, name)) names.emplace_back(name);
    if (names.size() >= BlockDevices::kMostDevices) break;
  }
  std::ranges::sort(names);
  return names;
}

}  // namespace

int64_t UnifiedWeight(int64_t weight) {
  constexpr int64_t kMostUnified = 10'000;
  return 1 + (weight - BlockioItem::kLeastWeight) * (kMostUnified - 1) /
                 (BlockioItem::kMostWeight - BlockioItem::kLeastWeight);
}

BlockioLimits ResolveBlockio(const std::vector<BlockioItem>& items, BlockDevices& devices,
                             HostFiles& files) {
  BlockioResolver resolver(devices, files);
  for (const BlockioItem& item : items)
    resolver.Add(item);
  return resolver.Take();
}

std::vector<BlockioFile> UnifiedFiles(const BlockioLimits& limits) {
  std::vector<BlockioFile> files;
  std::vector<std::string> lines;
  for (const auto& [number, device] : limits.devices) {
    const std::string read = LimitText(device.read_bps);
    const std::string write = LimitText(device.write_bps);
    const std::string reads = LimitText(device.read_iops);
    const std::string writes = LimitText(device.write_iops);
    // The kernel lists only devices with a limit.
    if (read == "max" && write == "max" && reads == "max" && writes == "max") continue;
    lines.push_back(fmt::format("{} rbps={} wbps={} riops={} wiops={}", NumberText(number), read,
                                write, reads, writes));
  }
  if (Throttles(limits)) files.push_back({"io.max", fmt::format("{}", fmt::join(lines, "\n"))});
  AddBlockioFile("io.weight", WeightLines(limits, &DeviceLimits::has_cost, UnifiedWeight), files);
  AddBlockioFile("io.bfq.weight",
                 WeightLines(limits, &DeviceLimits::has_bfq, [](int64_t weight) { return weight; }),
                 files);
  return files;
}

std::vector<BlockioFile> LegacyFiles(const BlockioLimits& limits) {
  struct Throttle {
    const char* name;
    std::optional<uint64_t> DeviceLimits::*value;
  };
  constexpr std::array<Throttle, 4> kThrottles = {{
      {"blkio.throttle.read_bps_device", &DeviceLimits::read_bps},
      {"blkio.throttle.write_bps_device", &DeviceLimits::write_bps},
      {"blkio.throttle.read_iops_device", &DeviceLimits::read_iops},
      {"blkio.throttle.write_iops_device", &DeviceLimits::write_iops},
  }};
  std::vector<BlockioFile> files;
  for (const Throttle& throttle : kThrottles) {
    std::vector<std::string> lines;
    bool said = false;
    for (const auto& [number, device] : limits.devices) {
      const std::optional<uint64_t>& value = device.*throttle.value;
      said = said || value.has_value();
      if (value.value_or(0) != 0) lines.push_back(fmt::format("{} {}", NumberText(number), *value));
    }
    if (said) files.push_back({throttle.name, fmt::format("{}", fmt::join(lines, "\n"))});
  }
  if (limits.weight) files.push_back({"blkio.bfq.weight", fmt::format("{}", *limits.weight)});
  std::vector<std::string> weights;
  for (const auto& [number, device] : limits.devices)
    if (device.weight && device.has_bfq)
      weights.push_back(fmt::format("{} {}", NumberText(number), *device.weight));
  AddBlockioFile("blkio.bfq.weight_device", weights, files);
  return files;
}

HostBlockDevices::HostBlockDevices(std::string_view root)
    : root_(root.substr(0, root.find_last_not_of('/') + 1)) {}

std::vector<FoundDevice> HostBlockDevices::Find(std::string_view glob) {
  std::vector<std::string> paths = {""};
  for (const std::string_view part : Split(glob, '/')) {
    if (part.empty()) continue;
    std::vector<std::string> next;
    for (const std::string& path : paths) {
      if (!IsGlobPart(part)) {
        next.push_back(fmt::format("{}/{}", path, part));
        continue;
      }
      for (const std::string& name : MatchingNames(fmt::format("{}{}/", root_, path), part))
        next.push_back(fmt::format("{}/{}", path, name));
      if (next.size() >= kMostDevices) break;
    }
    paths = std::move(next);
  }
  std::vector<FoundDevice> found;
  for (std::string& path : paths) {
    struct stat file {};
    if (::stat((root_ + path).c_str(), &file) != 0) continue;
    FoundDevice device{.path = std::move(path), .is_block = S_ISBLK(file.st_mode)};
    if (device.is_block) device.number = {major(file.st_rdev), minor(file.st_rdev)};
    found.push_back(std::move(device));
  }
  return found;
}

}  // namespace resmgr
