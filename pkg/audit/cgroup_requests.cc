// SPDX-License-Identifier: Apache-2.0
#include "pkg/audit/cgroup_requests.h"

#include <cerrno>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "pkg/audit/comparison.h"
#include "pkg/base/parse.h"
#include "pkg/sys/cgroups.h"
#include "pkg/sys/files.h"
#include "pkg/sys/unique_fd.h"

namespace resmgr {
namespace {

constexpr std::chrono::milliseconds kLookPatience{500};

bool Differs(const ResourceValues& known, const CgroupValues& actual) {
  return !CompareCgroup(known, actual).empty();
}

// The kernel rounds limits to whole pages.
bool IsLimit(int64_t actual, int64_t known) {
  const int64_t page = ::sysconf(_SC_PAGESIZE);
  return actual == known || actual == known / page * page;
}

// The values of `actual` that differ from the known ones, in the form that a runtime takes.
ResourceValues OfOthers(const ValuesOfOthers::Subject& subject, const CgroupValues& actual) {
  ResourceValues found;
  const ResourceValues& known = subject.known;
  // Without a quota, the period has no effect.
  const bool other_quota = Differs({.cpu_quota = known.cpu_quota}, actual);
  const bool limited = known.cpu_quota.value_or(-1) > 0;
  if (other_quota || (limited && Differs({.cpu_period = known.cpu_period}, actual))) {
    found.cpu_quota = actual.set.cpu_quota;
    found.cpu_period = actual.set.cpu_period;
  }
  const std::optional<int64_t>& memory = actual.set.memory_limit;
  if (subject.memory_limit.value_or(0) > 0 && memory && !IsLimit(*memory, *subject.memory_limit)) {
    found.memory_limit = memory;
    // The kernel and runtimes refuse a limit of memory and swap together that is below the one of
    // memory.
    const std::optional<int64_t>& swap = actual.set.memory_swap_limit;
    if (swap.value_or(-1) >= 0) found.memory_swap_limit = swap;
  }
  return found;
}

void AddCause(std::string& text, const std::string& more) {
  if (!more.empty()) text += (text.empty() ? "" : "; ") + more;
}

// The paths of one container's cgroups in the hierarchy of the cpusets.
struct Paths {
  std::string above;  // its pod's cgroup, "/kubepods/pod1"
  std::string own{};  // its own cgroup; "": it has none
};

Paths PathsOf(const CgroupReader& cgroups, const RefusalCauses::Subject& subject) {
  if (const auto found = cgroups.FindCpuset(subject.cgroup_parent, subject.id.value());
      found.ok()) {
    std::string own = found->InHierarchy();
    std::string above = own.substr(0, own.rfind('/'));
    return {.above = std::move(above), .own = std::move(own)};
  }
  std::string above = SlicePath(subject.cgroup_parent);
  if (!above.starts_with('/')) above.insert(0, 1, '/');
  return {.above = std::move(above)};
}

constexpr std::chrono::milliseconds kPatience{2'000};
// O_NONBLOCK: opening a FIFO must not block.
constexpr int kFileFlags = O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC | O_NOCTTY;
constexpr int kDirectoryFlags = O_PATH | O_DIRECTORY | O_CLOEXEC;

// Opens `path` below `root`, one name after the other, so that no symbolic link is followed.
StatusOr<UniqueFd> OpenDirectory(const std::string& root, std::string_view path) {
  UniqueFd directory(::open(root.c_str(), kDirectoryFlags));
  if (!directory.valid()) return ErrnoStatus(errno, root);
  while (!path.empty()) {
    const size_t slash = path.find('/');
    const std::string name(path.substr(0, slash));
    path = slash == std::string_view::npos ? std::string_view() : path.substr(slash + 1);
    if (name.empty() || name == ".") continue;
    UniqueFd next(::openat(directory.get(), name.c_str(), kDirectoryFlags | O_NOFOLLOW));
    if (!next.valid()) return ErrnoStatus(errno, Printable(name, 256));
    directory = std::move(next);
  }
  return directory;
}

StatusOr<UniqueFd> OpenFile(int directory, const char* name, int access) {
  UniqueFd file(::openat(directory, name, access | kFileFlags));
  if (!file.valid()) return ErrnoStatus(errno, fmt::format("cannot open {}", name));
  struct stat about {};
  if (::fstat(file.get(), &about) != 0) return ErrnoStatus(errno, name);
  if (!S_ISREG(about.st_mode)) return InvalidArgument("{} is no regular file", name);
  return file;
}

// One write for the whole text: the kernel takes each write as a complete list.
Status WriteFile(int directory, const char* name, const std::string& text) {
  RESMGR_ASSIGN_OR_RETURN(const UniqueFd file, OpenFile(directory, name, O_WRONLY));
  if (::ftruncate(file.get(), 0) != 0) return ErrnoStatus(errno, name);
  const ssize_t written = ::write(file.get(), text.data(), text.size());
  if (written < 0) return ErrnoStatus(errno, fmt::format("cannot write {} to {}", text, name));
  if (static_cast<size_t>(written) != text.size()) {
    return Internal("{} took {} of {} bytes", name, written, text.size());
  }
  return OkStatus();
}

template <typename Set>
StatusOr<Set> ReadList(int directory, const char* name) {
  RESMGR_ASSIGN_OR_RETURN(const UniqueFd file, OpenFile(directory, name, O_RDONLY));
  std::string text(CgroupReader::kMostBytes, '\0');
  const ssize_t got = ::read(file.get(), text.data(), text.size());
  if (got < 0) return ErrnoStatus(errno, fmt::format("cannot read {}", name));
  const std::string_view list = Trim(std::string_view(text).substr(0, static_cast<size_t>(got)));
  if (list.empty()) return Set();
  return Set::Parse(list);
}

// Writes a set and reads it back. On cgroup v2, a cpuset restricts nothing if a cgroup above allows
// none of its CPUs: the container would run on all CPUs of the cgroup above. So the effective set
// is checked, too.
template <typename Set>
Status Put(int directory, bool unified, const std::string& name, const Set& wanted) {
  RESMGR_RETURN_IF_ERROR(WriteFile(directory, name.c_str(), wanted.ToString()));
  RESMGR_ASSIGN_OR_RETURN(const Set set, ReadList<Set>(directory, name.c_str()));
  if (set != wanted)
    return Internal("{} is {} and not {}", name, set.ToString(), wanted.ToString());
  if (!unified) return OkStatus();
  const std::string left = name + ".effective";
  RESMGR_ASSIGN_OR_RETURN(const Set effective, ReadList<Set>(directory, left.c_str()));
  if (effective.empty() || !effective.IsSubsetOf(wanted)) {
    return Internal("{} is \"{}\", for {}", left, effective.ToString(), wanted.ToString());
  }
  return OkStatus();
}

}  // namespace

CgroupLookup::CgroupLookup(EventLoop& loop, CgroupReader cgroups)
    : CgroupLookup(
          loop,
          [cgroups = std::move(cgroups)](const Subject& subject) {
            const auto values = cgroups.ReadNumbers(subject.cgroup_parent, subject.id.value());
            return values.ok() ? OfOthers(subject, *values) : ResourceValues();
          },
          kLookPatience) {}

CgroupLookup::CgroupLookup(EventLoop& loop, ReadOne read, std::chrono::milliseconds patience)
    : looks_(loop, [read = std::move(read)] { return read; },
             {.name = "cgroup-lookup", .patience = patience}) {}

void CgroupLookup::Look(std::vector<Subject> subjects, std::function<void(Found)> done) {
  looks_.Do({std::move(subjects), std::move(done)});
}

std::string CauseOfRefusal(const CgroupReader& cgroups, CpusetLimits& limits,
                           const RefusalCauses::Subject& subject) {
  if (!CanBeCgroup(subject.cgroup_parent)) return "";
  const Paths paths = PathsOf(cgroups, subject);
  if (subject.cgroup_parent.empty() && paths.own.empty()) return "";
  std::string cause = limits.WhyNone(paths.own.empty() ? paths.above : paths.own);
  if (subject.cpus) {
    AddCause(cause, limits.WhyNot(paths.above, *subject.cpus - limits.AllowedCpus(paths.above)));
    AddCause(cause, limits.Conflicts(paths.above, paths.own, *subject.cpus));
  }
  if (subject.mems)
    AddCause(cause, limits.WhyNot(paths.above, *subject.mems - limits.AllowedMems(paths.above)));
  return cause;
}

CgroupCauses::CgroupCauses(EventLoop& loop, CgroupReader cgroups)
    : looks_(loop,
             [cgroups = std::move(cgroups)]() -> Looks::DoOne {
               return [cgroups, limits = std::make_shared<CpusetLimits>(cgroups.Limits())](
                          const Subject& subject) {
                 return CauseOfRefusal(cgroups, *limits, subject);
               };
             },
             {.name = "cgroup-causes", .patience = kLookPatience}) {}

CgroupCauses::CgroupCauses(EventLoop& loop, Looks::DoOne look, std::chrono::milliseconds patience)
    : looks_(loop, [look = std::move(look)] { return look; },
             {.name = "cgroup-causes", .patience = patience}) {}

void CgroupCauses::Find(Subject subject, std::function<void(std::string cause)> done) {
  looks_.Do({{std::move(subject)}, [done = std::move(done)](std::vector<std::string> found) {
               done(found.empty() ? "" : std::move(found.front()));
             }});
}

Status WriteCpuset(const CgroupReader& cgroups, const CpusetWriter::Subject& subject) {
  RESMGR_ASSIGN_OR_RETURN(const CgroupReader::CpusetDirectory found,
                          cgroups.FindCpuset(subject.cgroup_parent, subject.id.value()));
  RESMGR_ASSIGN_OR_RETURN(const UniqueFd directory,
                          OpenDirectory(cgroups.mount_point(), found.path));
  // On cgroup v1, a cgroup needs memory nodes before tasks can run in it.
  if (subject.mems) {
    RESMGR_RETURN_IF_ERROR(Put(directory.get(), found.unified, "cpuset.mems", *subject.mems));
  }
  if (!subject.cpus) return OkStatus();
  return Put(directory.get(), found.unified, "cpuset.cpus", *subject.cpus);
}

CgroupWriter::CgroupWriter(EventLoop& loop, CgroupReader cgroups)
    : CgroupWriter(
          loop,
          [cgroups = std::move(cgroups)](const Subject& subject) {
            return WriteCpuset(cgroups, subject);
          },
          kPatience) {}

CgroupWriter::CgroupWriter(EventLoop& loop, WriteOne write, std::chrono::milliseconds patience)
    : writes_(loop, [write = std::move(write)] { return write; },
              {.name = "cgroup-writer",
               .patience = patience,
               .patience_at_end = patience,
               .slow = "the cgroup took no write",
               .hangs = "a former write to a cgroup hangs"}) {}

void CgroupWriter::Write(Subject subject, Answer answer) {
  writes_.Do(
      {.subjects = {std::move(subject)},
       .done = [done = answer.done](const std::vector<Status>& results) { done(results.front()); },
       .failed = std::move(answer.done),
       .late = std::move(answer.late)});
}

}  // namespace resmgr
