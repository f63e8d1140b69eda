/* SPDX-License-Identifier: Apache-2.0 */
/* Browsers refuse workers to pages that are read from a folder. There a hidden frame runs the script
 * of the search, which is the only worker of the site. */
if (location.protocol === "file:") {
    window.Worker = class extends EventTarget {
        constructor(url) {
            super();
            const frame = document.createElement("iframe");
            const address = new URL(url, location.href).href.replaceAll("&", "&amp;").replaceAll('"', "&quot;");
            frame.hidden = true;
            frame.answer = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
            frame.srcdoc =
                "<script>postMessage = (data) => frameElement.answer(data)</script>" + `<script src="${address}"></script>`;
            this.window = new Promise((resolve) => (frame.onload = () => resolve(frame.contentWindow)));
            document.body.append(frame);
        }

        async postMessage(data) {
            (await this.window).dispatchEvent(new MessageEvent("message", { data }));
        }
    };
}
