// SPDX-License-Identifier: MIT
// Keys of a deck: arrows, space, PageDown, PageUp, Home, End; N shows the notes. A click shows the next slide. The address
// ends in the number of the slide.
const all = [...document.querySelectorAll('section')];
const now = () => Math.min(Math.max(parseInt(location.hash.slice(1)) || 1, 1), all.length);
const show = () => all.forEach((section, i) => section.classList.toggle('here', i + 1 === now()));
const go = number => { location.hash = Math.min(Math.max(number, 1), all.length); };
const steps = {ArrowRight: 1, ArrowDown: 1, ' ': 1, PageDown: 1, ArrowLeft: -1, ArrowUp: -1, PageUp: -1, Home: -1e9, End: 1e9};
addEventListener('hashchange', show);
addEventListener('click', () => { if (!String(getSelection())) go(now() + 1); });
addEventListener('keydown', event => {
    if (event.ctrlKey || event.altKey || event.metaKey) return;
    if (event.key in steps) { event.preventDefault(); go(now() + steps[event.key]); }
    if (event.key === 'n' || event.key === 'N') document.documentElement.classList.toggle('notes');
});
show();
