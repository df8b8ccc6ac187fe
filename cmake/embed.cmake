# SPDX-License-Identifier: Apache-2.0
# cmake -DOUTPUT=FILE.cc -DFILES=a;b -P embed.cmake: writes the definition of WebFiles() (pkg/page/web_files.h), which has these files.
set(arrays "")
set(rows "")
set(number 0)
foreach(file IN LISTS FILES)
  get_filename_component(name ${file} NAME)
  file(READ ${file} bytes HEX)
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "'\\\\x\\1'," bytes "${bytes}")
  string(APPEND arrays "constexpr char kFile${number}[] = {${bytes}};\n")
  string(APPEND rows "    {\"${name}\", {kFile${number}, sizeof(kFile${number})}},\n")
  math(EXPR number "${number} + 1")
endforeach()
file(WRITE ${OUTPUT} "#include \"pkg/page/web_files.h\"

namespace resmgr {
namespace {

${arrays}
constexpr WebFile kFiles[] = {
${rows}};

}  // namespace

std::span<const WebFile> WebFiles() {
  return kFiles;
}

}  // namespace resmgr
")
