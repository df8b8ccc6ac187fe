// SPDX-License-Identifier: Apache-2.0
#include "pkg/hooks/hook_file.h"

#include <optional>
#include <utility>

#include <nlohmann/json.hpp>

#include "pkg/base/failure_policy.h"
#include "pkg/base/json.h"
#include "pkg/base/parse.h"
#include "pkg/base/suggest.h"
#include "pkg/hooks/hook_port.h"
#include "pkg/kube/quantity.h"
#include "pkg/sys/unix_socket.h"

namespace resmgr::hooks {
namespace {

using Json = nlohmann::json;
using std::chrono::milliseconds;

constexpr std::string_view kEndpoint = "remote-endpoint";
constexpr std::string_view kFailurePolicy = "failure-policy";
constexpr std::string_view kHooks = "runtime-hooks";
constexpr std::string_view kMode = "mode";
constexpr std::string_view kTimeout = "timeout";

// Limit of nesting; a hook file has a list in an object.
constexpr size_t kDeepestHookFile = 8;
// Bytes of a name or value of the file that a message shows.
constexpr size_t kShown = 64;

std::string Shown(std::string_view text) {
  return Printable(text, kShown);
}

// Two paths that differ only in doubled slashes name one server:
// "/var/run/koordlet//koordlet.sock".
std::string WithoutDoubleSlashes(std::string_view path) {
  std::string result;
  for (const char c : path) {
    if (c != '/' || !result.ends_with('/')) result += c;
  }
  return result;
}

class Reader {
 public:
  Reader(std::string_view file, milliseconds timeout) {
    result_.settings.file = file;
    result_.settings.timeout = timeout;
  }

  Status Read(const Json& object) {
    if (!object.contains(kEndpoint)) return InvalidArgument("it has no {}", kEndpoint);
    if (!object.contains(kHooks)) Warn(fmt::format("it has no {}", kHooks));
    for (const auto& [key, value] : object.items())
      RESMGR_RETURN_IF_ERROR(ReadKey(key, value));
    return OkStatus();
  }

  // Takes what is valid of these.
  void ReadPolicyAndHooks(const Json& object) {
    for (const std::string_view key : {kFailurePolicy, kHooks}) {
      const auto value = object.find(key);
      if (value != object.end()) (void)ReadKey(std::string(key), *value);
    }
  }

  HookFile Take() {
    if (left_out_ > 0) {
      result_.warnings.push_back(fmt::format("{} more warnings are left out", left_out_));
    }
    return std::move(result_);
  }

 private:
  // Except for the endpoint, null counts as absent, as in Go's parser.
  Status ReadKey(const std::string& key, const Json& value) {
    if (key == kHooks) return ReadHooks(value);
    if (key == kEndpoint) return ReadText(key, value, &Reader::TakeEndpoint);
    if (key == kFailurePolicy) return ReadText(key, value, &Reader::TakeFailurePolicy);
    if (key == kMode) return ReadText(key, value, &Reader::TakeMode);
    if (key == kTimeout) return ReadText(key, value, &Reader::TakeTimeout);
    Warn(fmt::format("unknown key \"{}\"{}", Shown(key),
                     DidYouMean(key, {kEndpoint, kFailurePolicy, kHooks, kMode, kTimeout})));
    return OkStatus();
  }

  Status ReadText(const std::string& key, const Json& value,
                  Status (Reader::*take)(const std::string&)) {
    if (value.is_null() && key != kEndpoint) return OkStatus();
    if (!value.is_string()) return InvalidArgument("{} is not a string", key);
    return Annotate((this->*take)(value.get_ref<const std::string&>()), key);
  }

  Status TakeEndpoint(const std::string& text) {
    const std::string path = WithoutDoubleSlashes(StripUnixPrefix(text));
    if (!path.starts_with('/')) {
      return InvalidArgument("\"{}\" is not the absolute path of a socket", Shown(text));
    }
    RESMGR_RETURN_IF_ERROR(CheckUnixPath(path));
    result_.settings.endpoint = path;
    return OkStatus();
  }

  Status TakeFailurePolicy(const std::string& text) {
    if (text.empty()) return OkStatus();
    RESMGR_ASSIGN_OR_RETURN(result_.settings.failure, ParseFailurePolicy(text));
    return OkStatus();
  }

  Status TakeMode(const std::string& text) {
    if (text != "echo" && text != "sparse") {
      return InvalidArgument("\"{}\" is not one of echo, sparse", Shown(text));
    }
    result_.settings.style = text == "echo" ? AnswerStyle::kEcho : AnswerStyle::kSparse;
    return OkStatus();
  }

  Status TakeTimeout(const std::string& text) {
    const std::optional<milliseconds> timeout = ParseDuration(text, kLongestHookTimeout);
    if (!timeout || *timeout <= milliseconds(0)) {
      return InvalidArgument("\"{}\" is not a time from 1ms to {}, as in 500ms or 2s", Shown(text),
                             DurationText(kLongestHookTimeout));
    }
    result_.settings.timeout = *timeout;
    return OkStatus();
  }

  Status ReadHooks(const Json& value) {
    if (value.is_null()) return OkStatus();
    if (!value.is_array()) return InvalidArgument("{} is not a list", kHooks);
    Status status;
    for (const Json& name : value) {
      if (name.is_string()) {
        TakeHook(name.get_ref<const std::string&>());
      } else {
        status = InvalidArgument("{} has an entry that is not a string", kHooks);
      }
    }
    return status;
  }

  void TakeHook(const std::string& name) {
    if (const std::optional<HookPoint> point = HookPointOf(name)) {
      result_.settings.points.set(static_cast<size_t>(*point));
    } else if (name == kInertPoint) {
      Warn(fmt::format("{} is never called: RuntimeHookService has no method for it", name));
    } else {
      const std::vector<std::string> names = NamesOf(HookPointSet().set());
      Warn(fmt::format("unknown hook \"{}\"{}", Shown(name),
                       DidYouMean(name, {names.begin(), names.end()})));
    }
  }

  void Warn(std::string warning) {
    if (result_.warnings.size() + 1 < kMostHookWarnings) {
      result_.warnings.push_back(std::move(warning));
    } else {
      ++left_out_;
    }
  }

  HookFile result_;
  size_t left_out_ = 0;
};

StatusOr<Json> ParseObject(std::string_view text) {
  if (text.size() > kLongestHookFile) {
    return InvalidArgument("it has more than {} bytes", kLongestHookFile);
  }
  if (Trim(text).empty()) return InvalidArgument("it is empty");
  if (!IsShallowJson(text, kDeepestHookFile))
    return InvalidArgument("it has more than {} levels", kDeepestHookFile);
  std::optional<Json> object = ParseJson(text);
  if (!object || !object->is_object()) return InvalidArgument("it is not a JSON object");
  return *std::move(object);
}

}  // namespace

StatusOr<HookFile> ParseHookFile(std::string_view file, std::string_view text,
                                 milliseconds timeout) {
  RESMGR_ASSIGN_OR_RETURN(const Json object, ParseObject(text));
  Reader reader(file, timeout);
  RESMGR_RETURN_IF_ERROR(reader.Read(object));
  return reader.Take();
}

HookServerSettings ReadUnusableHookFile(std::string_view file, std::string_view text) {
  Reader reader(file, HookServerSettings().timeout);
  const StatusOr<Json> object = ParseObject(text);
  if (object.ok()) reader.ReadPolicyAndHooks(*object);
  return reader.Take().settings;
}

}  // namespace resmgr::hooks
