// Compiles Kaitai Struct specifications: JSON on standard input ({language, specifications by name}), JSON out (text by file).
// The first argument is the folder of the compiler's package.
const KaitaiStructCompiler = require(process.argv[2]);
let text = "";
process.stdin.on("data", (part) => (text += part));
process.stdin.on("end", async () => {
  const { language, specifications } = JSON.parse(text);
  const importer = { importYaml: async (name) => specifications[name] };
  const files = {};
  for (const specification of Object.values(specifications)) {
    Object.assign(files, await KaitaiStructCompiler.compile(language, specification, importer, false));
  }
  process.stdout.write(JSON.stringify(files));
});
