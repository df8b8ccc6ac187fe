// SPDX-License-Identifier: Apache-2.0
#include "pkg/hooks/hook_directory.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>

#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include "pkg/base/parse.h"
#include "pkg/hooks/hook_file.h"
#include "pkg/sys/files.h"

namespace resmgr::hooks {
namespace {

namespace fs = std::filesystem;

bool IsHookFileName(std::string_view name) {
  return name.ends_with(".json") && !name.starts_with('.');
}

StatusOr<std::vector<std::string>> NamesIn(const std::string& path) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator each(path, error), end; !error && each != end;
       each.increment(error)) {
    std::string name = each->path().filename().string();
    if (!IsHookFileName(name)) continue;
    // Only the first names in alphabetical order are kept, in whatever order the directory lists
    // them.
    names.insert(std::upper_bound(names.begin(), names.end(), name), name);
    if (names.size() > kMostHookFilesRead + 1) names.pop_back();
  }
  if (error == std::errc::no_such_file_or_directory) return std::vector<std::string>();
  if (error) return ErrnoStatus(error.value(), "cannot list the hook directory");
  return names;
}

// These include the rename that replaces a ConfigMap's link ..data.
constexpr uint32_t kChanges = IN_ATTRIB | IN_CLOSE_WRITE | IN_CREATE | IN_DELETE | IN_DELETE_SELF |
                              IN_MODIFY | IN_MOVE | IN_MOVE_SELF | IN_ONLYDIR;
constexpr int kMostReadsOfEvents = 64;
constexpr int kMostListings = 8;
constexpr size_t kMostComplaints = 8;

// Whether the listing left this file out although the directory has it: on tmpfs a listing may miss
// a file that is replaced by a rename meanwhile. Without this check the file's server would be gone
// for a moment.
bool LeftOut(const std::string& name, const std::string& directory,
             const HookDirectoryWatch::Files& files) {
  if (std::ranges::any_of(files, [&](const HookFileText& file) { return file.name == name; })) {
    return false;
  }
  if (files.size() > kMostHookFilesRead && files.back().name < name) return false;
  struct stat found {};
  return ::stat(fmt::format("{}/{}", directory, name).c_str(), &found) == 0;
}

}  // namespace

StatusOr<std::vector<HookFileText>> ReadHookDirectory(const std::string& path) {
  RESMGR_ASSIGN_OR_RETURN(const std::vector<std::string> names, NamesIn(path));
  std::vector<HookFileText> files;
  for (const std::string& name : names) {
    const bool beyond_limit = files.size() >= kMostHookFiles;
    if (files.size() == kMostHookFilesRead) {
      files.push_back({name,
                       ResourceExhausted("neither it nor what follows it is read, not even for "
                                         "its failure policy: the directory has more than {} files",
                                         kMostHookFilesRead),
                       beyond_limit});
      break;
    }
    StatusOr<std::string> text = ReadFile(fmt::format("{}/{}", path, name), kLongestHookFile);
    if (text.status().code() == StatusCode::kNotFound) continue;
    files.push_back({name, std::move(text), beyond_limit});
  }
  return files;
}

struct HookDirectoryWatch::Found {
  StatusOr<Files> files;
  int watch = -1;
  int watch_error = 0;
};

// An inotify instance; without one (the user's limit is reached) the directory is only polled.
// Watch looks up a path, so it may hang; the other functions do not touch the disk. Thread-safe.
class HookDirectoryWatch::Inotify {
 public:
  Inotify() : fd_(::inotify_init1(IN_NONBLOCK | IN_CLOEXEC)), error_(fd_.valid() ? 0 : errno) {}

  int fd() const { return fd_.get(); }

  // Watches the directory that the path leads to now, instead of `before`. Returns inotify's
  // number, or -1 and the error.
  int Watch(const std::string& path, int before, int& error) const {
    error = error_;
    if (!fd_.valid()) return -1;
    const int watch = ::inotify_add_watch(fd_.get(), path.c_str(), kChanges);
    error = watch < 0 ? errno : 0;
    if (before >= 0 && before != watch) (void)::inotify_rm_watch(fd_.get(), before);
    return watch;
  }

  // Reads the waiting events, as many as one turn of the loop has time for.
  void Drain() const {
    alignas(inotify_event) std::array<char, 4096> events;
    for (int i = 0; i < kMostReadsOfEvents; ++i) {
      if (::read(fd_.get(), events.data(), events.size()) <= 0) return;
    }
  }

 private:
  const UniqueFd fd_;
  const int error_;
};

HookDirectoryWatch::HookDirectoryWatch(EventLoop& loop, Options options,
                                       std::function<void(const Files&)> update)
    : loop_(loop),
      log_(GetLogger("hooks")),
      options_(std::move(options)),
      update_(std::move(update)),
      inotify_(std::make_shared<Inotify>()),
      reader_(loop, "hook-files", std::chrono::milliseconds(0)) {
  if (inotify_->fd() >= 0) {
    events_ = loop_.Watch(inotify_->fd(), EventLoop::kReadable, [this](int) { OnChange(); });
  }
  poll_ = loop_.Every(options_.poll, [this] { Read(); });
  Read();
}

// Further events stay in the kernel until the settle time is over, so that a program that writes
// all the time does not wake the loop each time.
void HookDirectoryWatch::OnChange() {
  EventLoop::SetEvents(*events_, 0);
  settled_ = loop_.After(options_.settle, [this] { OnSettled(); });
}

void HookDirectoryWatch::OnSettled() {
  inotify_->Drain();
  EventLoop::SetEvents(*events_, EventLoop::kReadable);
  again_ = true;
  Read();
}

void HookDirectoryWatch::Read() {
  if (reading_) return;
  again_ = false;
  reading_ = true;
  const Status started = reader_.Run([this, options = options_, inotify = inotify_, watch = watch_,
                                      names = names_]() -> EventLoop::Task {
    auto found = std::make_shared<Found>(Look(options, *inotify, watch, names));
    return [this, found] { OnRead(std::move(*found)); };
  });
  if (!started.ok()) {
    reading_ = false;
    Complain(std::string(Message(started)));
    return;
  }
  deadline_ = loop_.After(options_.deadline, [this] {
    late_ = true;
    Complain("the disk does not answer");
  });
}

// Runs on the reader's thread. The watch is set before the directory is read, so that a change
// during the read is noticed.
HookDirectoryWatch::Found HookDirectoryWatch::Look(const Options& options, const Inotify& inotify,
                                                   int watch,
                                                   const std::vector<std::string>& names) {
  Found found{.files = Unavailable("it changes faster than it can be read")};
  found.watch = inotify.Watch(options.directory, watch, found.watch_error);
  for (int i = 0; i < kMostListings; ++i) {
    StatusOr<Files> files = options.read(options.directory);
    const bool whole = !files.ok() || std::ranges::none_of(names, [&](const std::string& name) {
      return LeftOut(name, options.directory, *files);
    });
    if (!whole) continue;
    found.files = std::move(files);
    break;
  }
  return found;
}

void HookDirectoryWatch::OnRead(Found found) {
  deadline_.reset();
  reading_ = false;
  // If the read was late, its result may be out of date, so the directory is read again.
  const bool late = std::exchange(late_, false);
  if (late) again_ = true;
  watch_ = found.watch;
  TellWatched(found.watch_error);
  if (found.files.ok()) {
    known_ = true;
    if (!late && !std::exchange(complaints_, {}).empty()) {
      log_.Info("hook directory {} is read again", Printable(options_.directory));
    }
    names_.clear();
    for (const HookFileText& file : *found.files)
      names_.push_back(file.name);
    update_(*found.files);
  } else {
    Complain(std::string(Message(found.files.status())));
  }
  if (again_) Read();
}

void HookDirectoryWatch::TellWatched(int error) {
  if (std::exchange(watch_error_, error) == error) return;
  if (error == 0) {
    log_.Info("hook directory {} is watched", Printable(options_.directory));
  } else if (error == ENOENT) {
    log_.Info("hook directory {} is absent", Printable(options_.directory));
  } else {
    log_.Warn("changes in hook directory {} are detected with a delay of up to {} ms: {}",
              Printable(options_.directory), options_.poll.count(),
              Message(ErrnoStatus(error, "inotify cannot watch it")));
  }
}

void HookDirectoryWatch::Complain(const std::string& why) {
  const bool told = std::ranges::find(complaints_, why) != complaints_.end();
  if (told || complaints_.size() == kMostComplaints) return;
  complaints_.push_back(why);
  log_.Warn("hook directory {} cannot be read, the hook servers are unchanged: {}",
            Printable(options_.directory), Printable(why));
}

}  // namespace resmgr::hooks
