// SPDX-License-Identifier: Apache-2.0
#include "pkg/node/delivered_config.h"

#include <nlohmann/json.hpp>

#include "pkg/base/json.h"
#include "pkg/config/config_file.h"
#include "pkg/config/config_text.h"
#include "pkg/state/file_system.h"
#include "pkg/sys/files.h"

namespace resmgr {
namespace {

using Json = nlohmann::json;

constexpr size_t kMaxMessage = 2 * kMaxConfigSize + (size_t{64} << 10);
// JSON may need six bytes for one.
constexpr size_t kMaxFile = 6 * kMaxMessage + (size_t{64} << 10);

std::string PathIn(const std::string& directory) {
  return directory + "/config";
}

// Limits the sum of all keys.
Status CheckSize(const DeliveredConfig& source) {
  size_t bytes = 0;
  for (const auto& [key, text] : source.data)
    bytes += key.size() + text.size();
  if (bytes > kMaxConfigSize) {
    return InvalidArgument("{}: it has {} bytes, more than {}", source.name, bytes, kMaxConfigSize);
  }
  if (source.data.size() > kMaxConfigKeys) {
    return InvalidArgument("{}: it has {} keys, more than {}", source.name, source.data.size(),
                           kMaxConfigKeys);
  }
  return OkStatus();
}

}  // namespace

Status CheckMessageSize(std::string_view message) {
  if (message.size() <= kMaxMessage) return OkStatus();
  return ResourceExhausted("the configuration is too long: a message of {} bytes, at most {}",
                           message.size(), kMaxMessage);
}

StatusOr<Config> Parse(const DeliveredConfig& source, const ConfigChecks& checks) {
  RESMGR_RETURN_IF_ERROR(CheckSize(source));
  if (source.text) return ParseConfigFile(*source.text, source.name, checks);
  return ParseConfigMap(source.data, source.name, checks);
}

Status SaveDeliveredConfig(const std::string& directory, const DeliveredConfig& source) {
  RESMGR_RETURN_IF_ERROR(RealFileSystem().MakeDirectory(directory));
  Json object = {{"version", 1}, {"name", source.name}};
  if (source.text) {
    object["text"] = *source.text;
  } else {
    object["data"] = source.data;
  }
  return AtomicWriteFile(PathIn(directory), JsonText(object, 1) + "\n", 0600);
}

StatusOr<std::optional<DeliveredConfig>> LoadDeliveredConfig(const std::string& directory) {
  const StatusOr<std::string> text = ReadFile(PathIn(directory), kMaxFile);
  if (text.status().code() == StatusCode::kNotFound) return std::nullopt;
  if (!text.ok()) return text.status();
  const std::optional<Json> parsed = ParseJson(*text);
  if (!parsed) return InvalidArgument("{} cannot be read: it is not JSON", PathIn(directory));
  try {
    const Json& object = *parsed;
    if (object.at("version").get<int>() != 1) {
      return InvalidArgument("{} is of another version", PathIn(directory));
    }
    DeliveredConfig source;
    source.name = object.at("name").get<std::string>();
    if (object.contains("text")) {
      source.text = object.at("text").get<std::string>();
    } else {
      source.data = object.at("data").get<std::map<std::string, std::string>>();
    }
    return source;
  } catch (const Json::exception& error) {
    return InvalidArgument("{} cannot be read: {}", PathIn(directory), error.what());
  }
}

Status ForgetDeliveredConfig(const std::string& directory) {
  const Status removed = RealFileSystem().Remove(PathIn(directory));
  return removed.code() == StatusCode::kNotFound ? OkStatus() : removed;
}

}  // namespace resmgr
