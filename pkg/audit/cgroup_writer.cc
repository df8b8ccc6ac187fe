// SPDX-License-Identifier: Apache-2.0
#include "pkg/audit/cgroup_writer.h"

#include <cerrno>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "pkg/sys/errno_status.h"
#include "pkg/sys/unique_fd.h"

namespace resmgr {
namespace {

constexpr std::chrono::milliseconds kPatience{2'000};
// A FIFO must not make us wait.
constexpr int kFileFlags = O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC | O_NOCTTY;
constexpr int kDirectoryFlags = O_PATH | O_DIRECTORY | O_CLOEXEC;

// `path` below `root`, one name after the other.
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

// The kernel takes a list as one write.
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
  text.resize(static_cast<size_t>(got));
  while (!text.empty() && (text.back() == '\n' || text.back() == ' '))
    text.pop_back();
  if (text.empty()) return Set();
  return Set::Parse(text);
}

// On cgroup v2, a cpuset restricts nothing if a cgroup above allows none of its CPUs: the container
// would run on all CPUs of the cgroup above. So the effective set is checked, too.
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

Status WriteCpuset(const CgroupReader& cgroups, const CpusetWriter::Subject& subject) {
  RESMGR_ASSIGN_OR_RETURN(const CgroupReader::CpusetDirectory found,
                          cgroups.FindCpuset(subject.cgroup_parent, subject.id.value()));
  RESMGR_ASSIGN_OR_RETURN(const UniqueFd directory,
                          OpenDirectory(cgroups.mount_point(), found.path));
  // On cgroup v1 a group must have memory before it may have CPUs with tasks on them.
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
    : loop_(loop),
      write_(std::move(write)),
      patience_(patience),
      writing_(loop, "cgroup-writer", patience) {}

void CgroupWriter::Write(Subject subject, Answer answer) {
  waiting_.push_back({std::move(subject), std::move(answer)});
  if (batch_ == nullptr) Begin();
}

CgroupWriter::Results CgroupWriter::WriteAll(const WriteOne& write, const Batch& batch) {
  Results results;
  results.reserve(batch.requests.size());
  for (const Request& request : batch.requests) {
    if (batch.given_up) break;
    results.push_back(write(request.subject));
  }
  return results;
}

void CgroupWriter::Begin() {
  batch_ = std::make_shared<Batch>();
  batch_->requests = std::exchange(waiting_, {});
  const auto give_up = [this](Status why) {
    deadline_ =
        loop_.After(std::chrono::milliseconds(0), [this, why = std::move(why)] { EndAll(why); });
  };
  if (hangs_) return give_up(Unavailable("a former write to a cgroup hangs"));
  deadline_ = loop_.After(patience_, [this] {
    hangs_ = true;
    batch_->given_up = true;
    EndAll(DeadlineExceeded("the cgroup took no write within {} ms", patience_.count()));
  });
  const Status begun = writing_.Run([this, batch = batch_, write = write_]() -> EventLoop::Task {
    const auto results = std::make_shared<const Results>(WriteAll(write, *batch));
    return [this, batch, results] {
      hangs_ = false;
      if (batch_ == batch) return End(*results);
      for (size_t i = 0; i < results->size(); ++i)
        batch->requests[i].answer.late();
    };
  });
  if (!begun.ok()) give_up(begun);
}

void CgroupWriter::EndAll(const Status& status) {
  End(Results(batch_->requests.size(), status));
}

void CgroupWriter::End(const Results& results) {
  deadline_.reset();
  const std::shared_ptr<Batch> batch = std::exchange(batch_, nullptr);
  for (size_t i = 0; i < batch->requests.size(); ++i)
    batch->requests[i].answer.done(results[i]);
  if (batch_ == nullptr && !waiting_.empty()) Begin();
}

}  // namespace resmgr
