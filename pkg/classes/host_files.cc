// SPDX-License-Identifier: Apache-2.0
#include "pkg/classes/host_files.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <limits>
#include <optional>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "pkg/base/parse.h"
#include "pkg/classes/cpu_mask.h"
#include "pkg/classes/irqbalance.h"
#include "pkg/classes/rdt_masks.h"
#include "pkg/sys/files.h"
#include "pkg/sys/replace_file.h"
#include "pkg/sys/unique_fd.h"

namespace resmgr {
namespace {

// kWorkqueuesMask takes writes, but reads without the CPUs of isolated partitions; this file shows
// the mask as it was written (Linux 6.9).
constexpr const char* kWrittenWorkqueuesMask = "sys/devices/virtual/workqueue/cpumask_requested";

constexpr const char* kControllers = "sys/fs/cgroup/cgroup.controllers";

// Replaces the name of any irqbalance socket when masks are compared.
constexpr std::string_view kIrqbalance = "run/irqbalance/irqbalance.sock";

// The path of the socket that a path "SOCKET/interrupts" belongs to.
std::string SocketOfList(const std::string& whole) {
  return whole.substr(0, whole.rfind('/'));
}

bool IsPlainText(std::string_view text) {
  return std::ranges::all_of(
      text, [](char c) { return c == '\n' || c == '\t' || (c >= ' ' && c <= '~'); });
}

// Whether the file has names that others choose, of mounts and network cards: the kernel writes
// them as they are. Such a file is only read.
bool HasAnyBytes(std::string_view path) {
  return path == kMountsFile || path == kInterruptsFile;
}

bool IsMaskFile(std::string_view path) {
  return path.ends_with("smp_affinity") || path.ends_with("/cpumask") || IsIrqbalanceSocket(path);
}

bool SameMask(std::string_view a, std::string_view b) {
  const StatusOr<CpuSet> first = ParseCpuMask(a);
  const StatusOr<CpuSet> second = ParseCpuMask(b);
  return first.ok() && second.ok() && *first == *second;
}

bool IsAmountFile(std::string_view path) {
  const std::string_view name = path.substr(path.rfind('/') + 1);
  return name.starts_with("memory.");
}

// An amount in the kernel's notation: "64M" is 64 << 20 bytes.
std::optional<uint64_t> AmountOf(std::string_view text) {
  constexpr std::string_view kUnits = "kmgtpe";
  constexpr unsigned kBitsOfUnit = 10;
  unsigned shift = 0;
  if (!text.empty()) {
    const char last = text.back();
    const size_t unit =
        kUnits.find(static_cast<char>(last >= 'A' && last <= 'Z' ? last - 'A' + 'a' : last));
    if (unit != std::string_view::npos) {
      shift = static_cast<unsigned>(unit + 1) * kBitsOfUnit;
      text.remove_suffix(1);
    }
  }
  const std::optional<uint64_t> number = ParseUint(text);
  if (!number || *number > std::numeric_limits<uint64_t>::max() >> shift) return std::nullopt;
  return *number << shift;
}

// The kernel rounds amounts to whole pages.
bool SameAmount(std::string_view a, std::string_view b) {
  const auto page = static_cast<uint64_t>(::getpagesize());
  const std::optional<uint64_t> first = AmountOf(Trim(a));
  const std::optional<uint64_t> second = AmountOf(Trim(b));
  return first && second && *first / page == *second / page;
}

constexpr std::string_view kDefaultWord = "default";

// A kind of file with a line for each device.
struct LineFile {
  std::string_view name;
  std::string_view reset;  // the value that removes a device's line
  bool has_default;        // it has a line for all other devices, which cannot be removed
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

// A line's device numbers; the line "default" sorts before all of them.
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

RealHostFiles::RealHostFiles(std::string_view root, std::function<void(std::string_view)> in_hand)
    : root_(root.ends_with('/') ? std::string(root) : std::string(root) + "/"),
      in_hand_(std::move(in_hand)) {}

std::string RealHostFiles::PathOf(const std::string& path) const {
  std::string whole = root_ + path;
  in_hand_(whole);
  return whole;
}

StatusOr<std::string> RealHostFiles::ReadDirectory(const std::string& whole) const {
  struct stat found {};
  if (::stat(whole.c_str(), &found) == 0)
    return S_ISDIR(found.st_mode) ? StatusOr<std::string>(std::string(kThere))
                                  : InvalidArgument("{} is no directory", whole);
  if (errno != ENOENT) return ErrnoStatus(errno, fmt::format("cannot look at {}", whole));
  // If the parent is missing, too, this directory cannot be made.
  const std::string parent = whole.substr(0, whole.rfind('/', whole.rfind('/') - 1));
  if (::stat(parent.c_str(), &found) != 0) return NotFound("there is no {}", parent);
  return std::string();
}

StatusOr<std::string> RealHostFiles::ReadSocket(const std::string& whole) {
  StatusOr<std::string> now = ReadIrqbalance(whole);
  const auto told = told_.find(whole);
  if (!now.ok() || told == told_.end()) return now;
  const bool waits = std::chrono::steady_clock::now() < told->second.until;
  if (waits && !SameHostValue(kIrqbalance, *now, told->second.text)) return told->second.text;
  told_.erase(told);
  return now;
}

int RealHostFiles::WriteSocket(const std::string& whole, std::string_view text) {
  constexpr std::chrono::seconds kRound{30};
  const int error = WriteIrqbalance(whole, text);
  if (error == 0) {
    told_.insert_or_assign(whole,
                           Told{std::string(text), std::chrono::steady_clock::now() + kRound});
  }
  return error;
}

StatusOr<std::string> RealHostFiles::Read(const std::string& path) {
  const std::string whole = PathOf(path);
  if (IsIrqbalanceSocket(path)) return ReadSocket(whole);
  if (IsIrqbalanceList(path)) return ReadIrqbalanceList(SocketOfList(whole));
  if (IsDirectoryPath(path)) return ReadDirectory(whole);
  StatusOr<std::string> text = NotFound("there is no {}", whole);
  if (path == kWorkqueuesMask) text = ReadFile(PathOf(kWrittenWorkqueuesMask), kMostBytes);
  if (!text.ok()) text = ReadFile(whole, kMostBytes);
  if (text.ok() && !HasAnyBytes(path) && !IsPlainText(*text))
    return InvalidArgument("{} holds no plain text", whole);
  return text;
}

int RealHostFiles::Write(const std::string& path, std::string_view text) {
  std::string whole = PathOf(path);
  if (IsIrqbalanceSocket(path)) return WriteSocket(whole, text);
  if (IsIrqbalanceList(path)) return WriteIrqbalanceList(SocketOfList(whole), text);
  if (IsDirectoryPath(path)) {
    constexpr mode_t kMode = 0755;
    whole.resize(whole.size() - 2);
    const bool make = !Trim(text).empty();
    return (make ? ::mkdir(whole.c_str(), kMode) : ::rmdir(whole.c_str())) == 0 ? 0 : errno;
  }
  if (!IsOfKernel(path)) return ReplaceFile(whole, text);
  // The kernel's own files ignore the truncation.
  const UniqueFd fd(::open(whole.c_str(), O_WRONLY | O_TRUNC | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (!fd.valid()) return errno;
  struct stat found {};
  if (::fstat(fd.get(), &found) != 0) return errno;
  if (!S_ISREG(found.st_mode)) return EINVAL;
  // One write for the whole text, since the kernel takes each write as a value.
  ssize_t written = 0;
  do {
    written = ::write(fd.get(), text.data(), text.size());
  } while (written < 0 && errno == EINTR);
  if (written < 0) return errno;
  return static_cast<size_t>(written) == text.size() ? 0 : EIO;
}

std::vector<std::string> RealHostFiles::List(const std::string& directory) {
  return NamesIn(PathOf(directory));
}

bool IsOfKernel(std::string_view path) {
  return path.starts_with("proc/") || path.starts_with("sys/");
}

bool IsDirectoryPath(std::string_view path) {
  return path.ends_with("/.");
}

std::string ReadText(HostFiles& files, const std::string& path) {
  const StatusOr<std::string> text = files.Read(path);
  return text.ok() ? std::string(Trim(*text)) : "";
}

std::vector<std::string> ReadWords(HostFiles& files, const std::string& path) {
  std::vector<std::string> words;
  const std::string text = ReadText(files, path);
  for (const std::string_view word : Split(text, ' '))
    if (!word.empty()) words.emplace_back(word);
  return words;
}

CpuSet OnlineCpus(HostFiles& files) {
  return CpuSet::Parse(ReadText(files, "sys/devices/system/cpu/online")).value_or(CpuSet());
}

bool HasCgroupV2(HostFiles& files) {
  return files.Read(kControllers).ok();
}

Status CheckController(HostFiles& files, std::string_view controller) {
  RESMGR_RETURN_IF_ERROR(files.Read(kControllers).status());
  const std::vector<std::string> names = ReadWords(files, kControllers);
  if (std::ranges::find(names, controller) != names.end()) return OkStatus();
  return NotFound("{} has no {}", kControllers, controller);
}

bool IsPartition(HostFiles& files, std::string_view cgroup) {
  const std::string state = ReadText(files, fmt::format("{}/cpuset.cpus.partition", cgroup));
  return state == "root" || state == "isolated";
}

Status WriteError(int error, std::string_view path, std::string_view text) {
  return ErrnoStatus(error, fmt::format("cannot write {} to {}", Printable(Trim(text), 64), path));
}

Status ResctrlWriteError(int error, std::string_view path, std::string_view text,
                         HostFiles& files) {
  Status plain = WriteError(error, path, text);
  const std::string told = ReadText(files, "sys/fs/resctrl/info/last_cmd_status");
  if (told.empty() || told == "ok") return plain;
  return MakeStatus(plain.code(), fmt::format("{} ({})", Message(plain), Printable(told, 256)));
}

bool SameHostValue(std::string_view path, std::string_view a, std::string_view b) {
  if (Trim(a) == Trim(b)) return true;
  if (IsMaskFile(path)) return SameMask(a, b);
  if (IsAmountFile(path)) return SameAmount(a, b);
  if (path.ends_with("/schemata")) return HasSchemata(ParseSchemata(b), ParseSchemata(a));
  return false;
}

std::string WritableValue(std::string_view path, std::string_view text, std::string_view now) {
  if (!path.ends_with("/schemata")) return std::string(text);
  return SchemataText(SchemataOfPresent(ParseSchemata(text), ParseSchemata(now)));
}

std::string_view FreshValue(std::string_view path) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 16> kFresh = {{
      {"blkio.bfq.weight", "100\n"},
      {"blkio.bfq.weight_device", "\n"},
      {"blkio.throttle.read_bps_device", "\n"},
      {"blkio.throttle.read_iops_device", "\n"},
      {"blkio.throttle.write_bps_device", "\n"},
      {"blkio.throttle.write_iops_device", "\n"},
      {"io.bfq.weight", "default 100\n"},
      {"io.max", "\n"},
      {"io.weight", "default 100\n"},
      {"memory.high", "max\n"},
      {"memory.low", "0\n"},
      {"memory.min", "0\n"},
      {"memory.oom.group", "0\n"},
      {"memory.swap.high", "max\n"},
      {"memory.swap.max", "max\n"},
      {"memory.zswap.max", "max\n"},
  }};
  const std::string_view name = path.substr(path.rfind('/') + 1);
  const auto* const found =
      std::ranges::find(kFresh, name, &std::pair<std::string_view, std::string_view>::first);
  return found == kFresh.end() ? std::string_view() : found->second;
}

std::string HostValueLine(std::string_view text) {
  return fmt::format("{}", fmt::join(Split(Trim(text), '\n'), "; "));
}

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
  sources.reserve(texts.size());
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
