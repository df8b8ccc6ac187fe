// SPDX-License-Identifier: Apache-2.0
#include "pkg/classes/rdt_machine.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <optional>
#include <system_error>

#include "pkg/base/parse.h"

namespace resmgr {
namespace {

constexpr uint64_t kMostPercent = 100;
constexpr uint64_t kMostEighths = 2048;
constexpr int kInfoMaskBase = 16;

// Entries of the root that are no groups.
constexpr std::array<std::string_view, 10> kNoGroups = {
    "info",  "mon_groups", "mon_data", "cpus", "cpus_list",
    "tasks", "schemata",   "mode",     "size", "mba_MBps_event"};

class RdtReader {
 public:
  explicit RdtReader(HostKeeper& host) : host_(host) {}

  StatusOr<RdtHost> ReadAll() {
    const StatusOr<std::string> first = host_.ReadFirst(std::string(kResctrlSchemata));
    if (!first.ok() && first.status().code() == StatusCode::kNotFound) {
      return NotFound("there is no {}: resctrl is not mounted, or the machine has no RDT",
                      kResctrlSchemata);
    }
    if (!first.ok()) return first.status();
    root_ = ParseSchemata(*first);
    RdtHost read;
    read.most_groups = std::numeric_limits<uint32_t>::max();
    RESMGR_ASSIGN_OR_RETURN(read.machine.l2, ReadCache("L2", read.most_groups));
    RESMGR_ASSIGN_OR_RETURN(read.machine.l3, ReadCache("L3", read.most_groups));
    RESMGR_ASSIGN_OR_RETURN(read.machine.mb, ReadBandwidth(read.most_groups));
    for (const std::string& name : host_.files().List(std::string(kResctrlRoot))) {
      if (std::ranges::find(kNoGroups, name) == kNoGroups.end() &&
          host_.files().Read(RdtGroupFile(name, "schemata")).ok())
        read.groups.push_back(name);
    }
    return read;
  }

 private:
  StatusOr<std::string> Info(std::string_view resource, std::string_view file) {
    RESMGR_ASSIGN_OR_RETURN(
        const std::string text,
        host_.files().Read(fmt::format("{}/info/{}/{}", kResctrlRoot, resource, file)));
    return std::string(Trim(text));
  }
  StatusOr<uint64_t> InfoNumber(std::string_view resource, std::string_view file, int base = 10) {
    RESMGR_ASSIGN_OR_RETURN(const std::string text, Info(resource, file));
    uint64_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, base);
    if (error == std::errc() && end == text.data() + text.size()) return number;
    return InvalidArgument("{}/info/{}/{} is \"{}\" and no number", kResctrlRoot, resource, file,
                           Printable(text, 64));
  }
  std::vector<uint32_t> IdsOf(std::string_view resource) const {
    std::vector<uint32_t> ids;
    const auto found = root_.find(resource);
    if (found == root_.end()) return ids;
    for (const auto& [id, value] : found->second)
      ids.push_back(id);
    return ids;
  }
  Status CountGroups(std::string_view resource, uint32_t& most) {
    RESMGR_ASSIGN_OR_RETURN(const uint64_t count, InfoNumber(resource, "num_closids"));
    most = static_cast<uint32_t>(std::min<uint64_t>(most, count));
    return OkStatus();
  }

  StatusOr<std::optional<RdtCache>> ReadCache(std::string_view level, uint32_t& most) {
    RdtCache cache;
    std::string resource(level);
    cache.ids = IdsOf(resource);
    if (cache.ids.empty()) {
      resource += "CODE";
      cache.split = true;
      cache.ids = IdsOf(resource);
    }
    if (cache.ids.empty()) return std::optional<RdtCache>();
    RESMGR_ASSIGN_OR_RETURN(cache.mask, InfoNumber(resource, "cbm_mask", kInfoMaskBase));
    if (cache.mask == 0 || (cache.mask & (cache.mask + 1)) != 0)
      return InvalidArgument("{}/info/{}/cbm_mask is {:#x}, which is no mask from bit 0",
                             kResctrlRoot, resource, cache.mask);
    RESMGR_ASSIGN_OR_RETURN(const uint64_t least, InfoNumber(resource, "min_cbm_bits"));
    cache.min_bits = static_cast<uint32_t>(std::clamp<uint64_t>(least, 1, 64));
    cache.sparse = Info(resource, "sparse_masks").value_or("0") == "1";
    RESMGR_RETURN_IF_ERROR(CountGroups(resource, most));
    return std::optional(cache);
  }

  StatusOr<std::optional<RdtBandwidth>> ReadBandwidth(uint32_t& most) {
    RdtBandwidth bandwidth;
    bandwidth.ids = IdsOf("MB");
    if (bandwidth.ids.empty()) return std::optional<RdtBandwidth>();
    RESMGR_RETURN_IF_ERROR(CountGroups("MB", most));
    RESMGR_ASSIGN_OR_RETURN(const uint64_t least, InfoNumber("MB", "min_bandwidth"));
    bandwidth.least =
        static_cast<uint32_t>(std::min<uint64_t>(least, std::numeric_limits<uint32_t>::max()));
    bandwidth.step = static_cast<uint32_t>(
        std::clamp<uint64_t>(InfoNumber("MB", "bandwidth_gran").value_or(1), 1, kMostPercent));
    // The root has all that there is before the first write.
    const uint64_t all = root_.at("MB").at(bandwidth.ids.front());
    if (IsMbpsMount()) {
      bandwidth.unit = RdtBandwidth::Unit::kMbps;
    } else if (all > kMostPercent && all <= kMostEighths) {
      bandwidth.unit = RdtBandwidth::Unit::kEighths;
    }
    return std::optional(bandwidth);
  }
  bool IsMbpsMount() {
    const StatusOr<std::string> mounts = host_.files().Read("proc/mounts");
    if (!mounts.ok()) return false;
    for (const std::string_view line : Split(*mounts, '\n')) {
      // "resctrl /sys/fs/resctrl resctrl rw,relatime,mba_MBps 0 0"
      const std::vector<std::string_view> words = Split(line, ' ');
      constexpr size_t kType = 2;
      constexpr size_t kOptions = 3;
      if (words.size() <= kOptions || words[kType] != "resctrl") continue;
      const std::vector<std::string_view> options = Split(words[kOptions], ',');
      if (std::ranges::find(options, "mba_MBps") != options.end()) return true;
    }
    return false;
  }

  HostKeeper& host_;
  RdtSchemata root_;
};

}  // namespace

std::string RdtGroupPath(std::string_view group) {
  return fmt::format("{}/{}", kResctrlRoot, group);
}

std::string RdtGroupFile(std::string_view group, std::string_view file) {
  return fmt::format("{}/{}/{}", kResctrlRoot, group, file);
}

StatusOr<RdtHost> ReadRdt(HostKeeper& host) {
  return RdtReader(host).ReadAll();
}

}  // namespace resmgr
