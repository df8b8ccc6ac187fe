// SPDX-License-Identifier: Apache-2.0
#include "pkg/classes/host_keeper.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <tuple>

#include "pkg/base/parse.h"

namespace resmgr {
namespace {

bool IsGone(int error) {
  return error == ENOENT || error == ENODEV || error == ENXIO;
}

constexpr std::string_view kPartition = "/cpuset.cpus.partition";
constexpr std::string_view kGovernor = "/scaling_governor";
// Files with the least and the highest clock of a CPU or a package.
constexpr std::array<std::pair<std::string_view, std::string_view>, 2> kLimits = {
    {{"/scaling_min_freq", "/scaling_max_freq"}, {"/min_freq_khz", "/max_freq_khz"}}};

// Limit of log lines, in case another program keeps changing many files.
constexpr size_t kMostNotes = 20;

bool IsInterrupt(std::string_view path) {
  return path.starts_with("proc/irq/");
}

// Whether the file has a CPU quota: the kubelet writes it when a pod is resized.
bool IsQuotaFile(std::string_view path) {
  return path.ends_with("/cpu.max") || path.ends_with("/cpu.cfs_quota_us");
}

// Whether the file has a value that this daemon wrote. A partition may read "isolated invalid
// (why)".
bool IsOurs(std::string_view path, std::string_view now, const JournalEntry& entry) {
  if (SameHostValue(path, now, entry.wanted) || SameHostValue(path, now, entry.was)) return true;
  // A mixture of lines remains if the kernel refused one line, or a process was killed between two.
  if (MixesDeviceLines(path, now, {entry.first, entry.wanted, entry.was})) return true;
  if (!path.ends_with(kPartition)) return false;
  return Trim(now).starts_with(fmt::format("{} ", Trim(entry.wanted)));
}

bool IsCpusOfMonitor(std::string_view path) {
  return path.starts_with("sys/fs/resctrl/") && path.ends_with("/cpus_list") &&
         path.find("/mon_groups/") != std::string_view::npos;
}

// Whether the kernel takes all CPUs from the monitoring groups of the control group that this is
// written to.
bool ClearsMonitors(std::string_view path) {
  return path.starts_with("sys/fs/resctrl/") && path.ends_with("/cpus_list") &&
         !IsCpusOfMonitor(path);
}

std::string Shown(std::string_view text) {
  return Printable(Trim(text), 64);
}

// The log line for a file that had this daemon's value and now reads something else.
std::string ChangeNote(std::string_view path, std::string_view now, std::string_view text) {
  // The kernel invalidates a partition whose CPUs it cannot have.
  const bool ended = path.ends_with(kPartition) && now.find(" invalid") != std::string_view::npos;
  return ended ? fmt::format("{} reads {}: it gets {} again", path, Shown(now), Shown(text))
               : fmt::format("another program wrote {} to {}: it gets {} again", Shown(now), path,
                             Shown(text));
}

// Writing an empty text would do nothing, so "\n" is written instead.
std::string_view Written(std::string_view text) {
  return text.empty() ? "\n" : text;
}

// Updates the entry of a file that reads `now`, before `text` is written to it.
void Change(std::string_view path, std::string_view now, std::string_view text,
            JournalEntry& entry) {
  // An empty file is being written: unlike files of the kernel, those on a disk are empty
  // meanwhile.
  const bool known =
      Trim(now).empty() || SameHostValue(path, now, entry.first) || IsOurs(path, now, entry);
  // If another program's value is there, it must stay if this daemon's value does not get into
  // force. A pod's quota belongs to the kubelet, so the kubelet's last value is the one to restore.
  if (!known && IsQuotaFile(path)) entry.first = now;
  if (known) {
    entry.was = now;
  } else {
    entry.was = entry.wanted;
  }
  entry.wanted = text;
}

void Shorten(std::vector<std::string>& notes) {
  if (notes.size() <= kMostNotes) return;
  const size_t more = notes.size() - kMostNotes;
  notes.resize(kMostNotes);
  notes.push_back(fmt::format("the same for {} more files", more));
}

}  // namespace

bool IsManaged(int error) {
  return error == EPERM || error == EIO;
}

StatusOr<std::string> HostKeeper::ReadFirst(const std::string& path) {
  const auto entry = journal_.entries().find(path);
  if (entry != journal_.entries().end()) return entry->second.first;
  return files_.Read(path);
}

std::vector<HostValue> HostKeeper::HeldBelow(std::string_view directory) const {
  std::vector<HostValue> values;
  for (const auto& [path, entry] : journal_.entries())
    if (path.starts_with(directory)) values.push_back({.path = path, .text = entry.wanted});
  return values;
}

HostValue HostKeeper::LimitOf(std::string path, std::string text,
                              std::optional<std::string_view> requested) {
  HostValue value{.path = std::move(path), .text = std::move(text)};
  if (Holds(value.path)) return value;
  const StatusOr<std::string> now = files_.Read(value.path);
  if (!now.ok() || !SameHostValue(value.path, *now, value.text)) return value;
  const std::string_view fresh = FreshValue(value.path);
  // A request for the same value gets an entry, too: the next process does not know the request.
  if (requested) {
    value.first = *requested;
  } else if (!SameHostValue(value.path, fresh, value.text)) {
    value.first = fresh;
  }
  return value;
}

bool HostKeeper::IsOfOfflineCpu(std::string_view path) {
  constexpr std::string_view kCpu = "sys/devices/system/cpu/cpu";
  if (!path.starts_with(kCpu)) return false;
  path.remove_prefix(kCpu.size());
  const std::optional<int> cpu = ParseId(path.substr(0, path.find('/')), CpuSet::kMaxId);
  const CpuSet online = OnlineCpus(files_);
  return cpu && !online.empty() && !online.Contains(*cpu);
}

bool HostKeeper::GiveBack(const std::string& path, const JournalEntry& entry, Result& result) {
  const StatusOr<std::string> now = files_.Read(path);
  if (!now.ok() && now.status().code() == StatusCode::kNotFound) return true;
  const auto fail = [&](std::string why) {
    // The kernel does not answer for the clock of a CPU that is offline (EBUSY).
    if (IsOfOfflineCpu(path)) {
      result.waiting.insert(path);
    } else {
      result.not_given_back.emplace(path, std::move(why));
    }
    return false;
  };
  if (!now.ok()) return fail(std::string(Message(now.status())));
  if (SameHostValue(path, *now, entry.first)) return true;
  // Empty: the file was being written. Unlike files of the kernel, those on a disk are empty
  // meanwhile.
  const bool torn = Trim(*now).empty();
  if (!torn && !IsOurs(path, *now, entry)) {
    result.notes.push_back(
        fmt::format("{} stays at {}, which another program has written", path, Shown(*now)));
    return true;
  }
  const std::string first = WritableValue(path, entry.first, *now);
  const int error = files_.Write(path, Written(first));
  if (IsGone(error)) return true;
  if (error != 0) return fail(std::string(Message(WriteError(error, path, first))));
  const StatusOr<std::string> then = files_.Read(path);
  if (then.ok() && !SameHostValue(path, *then, first))
    return fail(fmt::format("wrote {}, but it reads {}", Shown(first), Shown(*then)));
  return true;
}

// Whether this file must be restored before other files of its directory: the least clock if the
// highest one returns to less than the present least one, and a governor that is performance now,
// before an energy preference.
bool HostKeeper::GoesFirst(const std::string& path) {
  if (path.ends_with(kGovernor)) return ReadText(files_, path) == "performance";
  for (const auto& [min, max] : kLimits) {
    if (!path.ends_with(min)) continue;
    const auto other =
        journal_.entries().find(path.substr(0, path.size() - min.size()).append(max));
    if (other == journal_.entries().end()) return false;
    const std::optional<int64_t> least = ParseInt(ReadText(files_, path));
    const std::optional<int64_t> highest = ParseInt(Trim(other->second.first));
    return least && highest && *highest < *least;
  }
  return false;
}

std::vector<std::string> HostKeeper::NotWanted(const std::vector<HostValue>& wanted) {
  std::set<std::string_view> wants;
  for (const HostValue& value : wanted)
    wants.insert(value.path);
  // Ranks first, so that each file is read once and not for each comparison of the sort.
  using Rank = std::tuple<bool, std::ptrdiff_t, bool>;
  std::vector<std::pair<Rank, std::string>> ranked;
  for (const auto& [path, entry] : journal_.entries()) {
    if (wants.contains(path)) continue;
    ranked.emplace_back(
        Rank(path.ends_with(kPartition), std::ranges::count(path, '/'), GoesFirst(path)), path);
  }
  std::ranges::stable_sort(ranked, std::greater(), &std::pair<Rank, std::string>::first);
  std::vector<std::string> paths;
  paths.reserve(ranked.size());
  for (auto& [rank, path] : ranked)
    paths.push_back(std::move(path));
  return paths;
}

void HostKeeper::GiveBackRest(const std::vector<HostValue>& wanted, ClassJournal::Entries& next,
                              Result& result) {
  for (const std::string& path : NotWanted(wanted)) {
    const auto entry = next.find(path);
    if (!GiveBack(path, entry->second, result)) continue;
    seen_.erase(path);
    next.erase(entry);
  }
}

bool HostKeeper::Refused(const HostValue& value, HostOutcome& outcome) const {
  const auto refused = refused_.find(value.path);
  if (refused == refused_.end() || refused->second.first != value.text) return false;
  outcome.error = refused->second.second;
  outcome.status = WriteError(outcome.error, value.path, value.text);
  return true;
}

HostKeeper::Values HostKeeper::Prepare(const Values& wanted, Batch& batch) {
  Values pending;
  Result& result = batch.result;
  for (const HostValue* const one : wanted) {
    const HostValue& value = *one;
    HostOutcome& outcome = result.outcomes[value.path];
    outcome = HostOutcome();
    const StatusOr<std::string> now = files_.Read(value.path);
    if (!now.ok()) {
      outcome.status = now.status();
      continue;
    }
    outcome.in_force = Trim(*now);
    const auto known = batch.next.find(value.path);
    const bool in_force = SameHostValue(value.path, *now, value.text);
    const auto seen = seen_.find(value.path);
    if (!in_force && seen != seen_.end() && !SameHostValue(value.path, *now, seen->second))
      result.notes.push_back(ChangeNote(value.path, *now, value.text));
    if (in_force) {
      if (known != batch.next.end()) known->second.wanted = value.text;
      if (known == batch.next.end() && !value.first.empty() &&
          batch.next.size() < ClassJournal::kMostEntries)
        batch.next[value.path] = {.first = value.first, .wanted = value.text, .was = *now};
      continue;
    }
    if (Refused(value, outcome)) continue;
    const bool is_new = known == batch.next.end();
    if (is_new && batch.next.size() >= ClassJournal::kMostEntries) {
      outcome.status = ResourceExhausted("more than {} files of the host would be changed",
                                         ClassJournal::kMostEntries);
      continue;
    }
    JournalEntry& entry = is_new ? batch.next[value.path] : known->second;
    if (is_new) entry.first = value.first.empty() ? *now : value.first;
    Change(value.path, *now, value.text, entry);
    batch.before[value.path] = *now;
    pending.push_back(one);
  }
  return pending;
}

void HostKeeper::Write(const HostValue& value, Batch& batch) {
  HostOutcome& outcome = batch.result.outcomes[value.path];
  outcome.error = files_.Write(value.path, value.text);
  const StatusOr<std::string> now = files_.Read(value.path);
  outcome.in_force = now.ok() ? Trim(*now) : "";
  if (outcome.error != 0) {
    outcome.status = value.path.starts_with("sys/fs/resctrl/")
                         ? ResctrlWriteError(outcome.error, value.path, value.text, files_)
                         : WriteError(outcome.error, value.path, value.text);
    if (IsInterrupt(value.path) && IsManaged(outcome.error))
      refused_[value.path] = {value.text, outcome.error};
    return;
  }
  batch.written.push_back(&value);
  if (!now.ok()) {
    outcome.status = now.status();
  } else if (!SameHostValue(value.path, *now, value.text)) {
    outcome.status =
        Unavailable("{} was given {} and reads {}", value.path, Shown(value.text), Shown(*now));
  }
}

// Restores the values that belong together with the refused one to those before this call, the last
// one first.
void HostKeeper::RollBack(const HostValue& refused, Batch& batch) {
  const Status& why =
      batch.failed.emplace(refused.together, batch.result.outcomes[refused.path].status)
          .first->second;
  for (auto value = batch.written.rbegin(); value != batch.written.rend(); ++value) {
    const std::string& path = (*value)->path;
    if ((*value)->together != refused.together) continue;
    const int error = files_.Write(path, Written(batch.before.at(path)));
    HostOutcome& outcome = batch.result.outcomes[path];
    outcome.in_force = ReadText(files_, path);
    outcome.error = ECANCELED;
    outcome.status = error == 0 || IsGone(error)
                         ? Annotate(why, fmt::format("{} got its former value again", path))
                         : WriteError(error, path, batch.before.at(path));
    NoteWritten(**value, outcome, batch.next);
  }
  std::erase_if(batch.written,
                [&refused](const HostValue* value) { return value->together == refused.together; });
}

void HostKeeper::NoteWritten(const HostValue& value, const HostOutcome& outcome,
                             ClassJournal::Entries& next) {
  if (outcome.status.ok()) return;
  const auto entry = next.find(value.path);
  if (entry == next.end()) return;
  if (outcome.error != 0) {
    // The write failed, and the file still has its first value: it needs no entry.
    if (SameHostValue(value.path, outcome.in_force, entry->second.first)) next.erase(entry);
    return;
  }
  // If the kernel has changed the value on writing, the changed value counts as this daemon's, too.
  // If the file cannot be read, it may have the value.
  if (!outcome.in_force.empty() && !SameHostValue(value.path, outcome.in_force, entry->second.was))
    entry->second.was = outcome.in_force;
}

bool HostKeeper::WriteAll(const Values& wanted, Batch& batch) {
  const Values pending = Prepare(wanted, batch);
  if (batch.next != journal_.entries()) batch.result.journal = journal_.Save(batch.next);
  if (!batch.result.journal.ok()) {
    for (const HostValue* const one : pending)
      batch.result.outcomes[one->path].status = batch.result.journal;
    return false;
  }
  bool changed = false;
  for (const HostValue* const one : pending) {
    HostOutcome& outcome = batch.result.outcomes[one->path];
    const auto failed =
        one->together.empty() ? batch.failed.end() : batch.failed.find(one->together);
    if (failed != batch.failed.end()) {
      outcome.error = ECANCELED;
      outcome.status = Annotate(failed->second, fmt::format("{} was not written", one->path));
    } else {
      Write(*one, batch);
      if (outcome.error != 0 && !one->together.empty()) RollBack(*one, batch);
      changed = changed ||
                (outcome.error == 0 && (IsDirectoryPath(one->path) || ClearsMonitors(one->path)));
    }
    NoteWritten(*one, outcome, batch.next);
  }
  return changed;
}

std::vector<HostDifference> HostKeeper::Compare(const std::vector<HostValue>& wanted) {
  std::vector<HostDifference> differences;
  for (const HostValue& value : wanted) {
    const StatusOr<std::string> now = files_.Read(value.path);
    HostOutcome refused;
    if ((now.ok() && SameHostValue(value.path, *now, value.text)) || Refused(value, refused))
      continue;
    HostDifference& one = differences.emplace_back(
        HostDifference{.path = value.path, .wanted = std::string(Trim(value.text))});
    if (now.ok()) {
      one.now = Trim(*now);
    } else {
      one.unread = Message(now.status());
    }
  }
  return differences;
}

HostKeeper::Result HostKeeper::Keep(const std::vector<HostValue>& wanted) {
  Batch batch;
  Result& result = batch.result;
  result.journal = journal_.Open();
  if (!result.journal.ok()) {
    for (const HostValue& value : wanted)
      result.outcomes[value.path].status = result.journal;
    return std::move(batch.result);
  }
  batch.next = journal_.entries();
  GiveBackRest(wanted, batch.next, result);
  Values all;
  for (const HostValue& value : wanted)
    all.push_back(&value);
  while (WriteAll(all, batch)) {
    // Tries those files again whose directory was missing, since it may have been made now, and
    // those that the kernel may have changed with another one.
    std::erase_if(all, [&result](const HostValue* value) {
      return result.outcomes[value->path].status.code() != StatusCode::kNotFound &&
             !IsCpusOfMonitor(value->path);
    });
    for (const HostValue* const value : all)
      seen_.erase(value->path);
  }
  Shorten(result.notes);
  // If this fails, the disk has more entries than needed, which does no harm.
  if (result.journal.ok() && batch.next != journal_.entries())
    result.journal = journal_.Save(std::move(batch.next));
  seen_.clear();
  for (const auto& [path, outcome] : result.outcomes)
    if (outcome.status.ok()) seen_.emplace(path, outcome.in_force);
  std::erase_if(refused_,
                [&result](const auto& one) { return !result.outcomes.contains(one.first); });
  return std::move(batch.result);
}

}  // namespace resmgr
