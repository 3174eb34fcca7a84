// node run.mjs PYODIDE FOLDER: run try.py with the mcp_lite.py of FOLDER; the exit status tells.
import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

const [, , pyodide, folder] = process.argv;
const { loadPyodide } = await import(pathToFileURL(pyodide).href);
const python = await loadPyodide({ env: { PYTHONDONTWRITEBYTECODE: "1" } });
python.FS.mkdirTree("/work");
python.FS.mount(python.FS.filesystems.NODEFS, { root: folder }, "/work");
try {
  await python.runPythonAsync(readFileSync(new URL("try.py", import.meta.url), "utf8") + "\nawait main()");
} catch (error) {
  console.log(String(error.message).slice(-2000));
  process.exitCode = 1;
}
process.exit(); // timers may be left
