// SPDX-License-Identifier: Apache-2.0
#include "pkg/admin/config_source.h"

#include <nlohmann/json.hpp>

#include "pkg/config/config_file.h"
#include "pkg/state/file_system.h"
#include "pkg/sys/files.h"

namespace resmgr {
namespace {

using Json = nlohmann::json;

constexpr size_t kMaxFile = size_t{64} << 20;

std::string PathIn(const std::string& directory) {
  return directory + "/config";
}

}  // namespace

StatusOr<Config> Parse(const ConfigSource& source, const ConfigChecks& checks) {
  if (source.text) return ParseConfigFile(*source.text, source.name, checks);
  return ParseConfigMap(source.data, source.name, checks);
}

Status SaveConfigSource(const std::string& directory, const ConfigSource& source) {
  RESMGR_RETURN_IF_ERROR(RealFileSystem().MakeDirectory(directory));
  Json object = {{"version", 1}, {"name", source.name}};
  if (source.text) {
    object["text"] = *source.text;
  } else {
    object["data"] = source.data;
  }
  return AtomicWriteFile(PathIn(directory),
                         object.dump(1, ' ', false, Json::error_handler_t::replace) + "\n", 0600);
}

StatusOr<std::optional<ConfigSource>> LoadConfigSource(const std::string& directory) {
  const StatusOr<std::string> text = ReadFile(PathIn(directory), kMaxFile);
  if (text.status().code() == StatusCode::kNotFound) return std::nullopt;
  if (!text.ok()) return text.status();
  try {
    const Json object = Json::parse(*text);
    if (object.at("version").get<int>() != 1) {
      return InvalidArgument("{} is of another version", PathIn(directory));
    }
    ConfigSource source;
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

Status ForgetConfigSource(const std::string& directory) {
  const Status removed = RealFileSystem().Remove(PathIn(directory));
  return removed.code() == StatusCode::kNotFound ? OkStatus() : removed;
}

}  // namespace resmgr
